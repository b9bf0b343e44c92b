// A replacement for Npgsql through ODBC, with the members that the example uses.
using System;
using System.Collections.Generic;
using System.Data;
using System.Data.Odbc;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

namespace Npgsql
{
    public class NpgsqlException : Exception
    {
        public NpgsqlException(string message) : base(message) { }
    }

    public sealed class PostgresException : NpgsqlException
    {
        public string SqlState { get; }

        public PostgresException(string message, string sqlState) : base(message)
        {
            SqlState = sqlState;
        }
    }

    public sealed class NpgsqlParameter
    {
        public object Value { get; set; }
    }

    public sealed class NpgsqlTransaction : IDisposable
    {
        internal readonly OdbcTransaction Odbc;

        internal NpgsqlTransaction(OdbcTransaction odbc)
        {
            Odbc = odbc;
        }

        public void Commit()
        {
            Odbc.Commit();
        }

        public void Dispose()
        {
            Odbc.Dispose();
        }
    }

    /// <summary>Not pooled: opened each time.</summary>
    public sealed class NpgsqlConnection : IDisposable
    {
        static readonly object gate = new object();
        static bool knowsTypes;

        internal readonly OdbcConnection Odbc;
        internal NpgsqlTransaction Transaction;

        public NpgsqlConnection(string source)
        {
            var driver = Environment.GetEnvironmentVariable("ODBC_DRIVER");
            var words = source.Replace("Host=", "Servername=").Replace("Username=", "Uid=").Replace("Password=", "Pwd=");
            Odbc = new OdbcConnection($"Driver={driver};{words}");
        }

        public Task OpenAsync()
        {
            return Errors.Translated<object>(() =>
            {
                Odbc.Open();
                LearnTypes();
                return null;
            });
        }

        // The first call with text detects Unicode support. If two threads do this at once,
        // System.Data.Odbc may take it for unsupported in one of them.
        void LearnTypes()
        {
            lock (gate)
            {
                if (knowsTypes)
                    return;
                using (var first = new OdbcCommand("select ?::text", Odbc))
                {
                    first.Parameters.Add(new OdbcParameter { Value = "" });
                    first.ExecuteScalar();
                }
                knowsTypes = true;
            }
        }

        public ConnectionState State => Odbc.State;

        public NpgsqlTransaction BeginTransaction()
        {
            return Transaction = new NpgsqlTransaction(Odbc.BeginTransaction());
        }

        public void Dispose()
        {
            Odbc.Dispose();
        }
    }

    public sealed class NpgsqlCommand : IDisposable
    {
        readonly OdbcCommand odbc;

        public List<NpgsqlParameter> Parameters { get; } = new List<NpgsqlParameter>();

        public NpgsqlCommand(string statement, NpgsqlConnection connection)
        {
            odbc = new OdbcCommand(statement, connection.Odbc, connection.Transaction?.Odbc);
        }

        /// <summary>Run the statement with a placeholder for each named parameter.</summary>
        public Task<OdbcDataReader> ExecuteReaderAsync()
        {
            odbc.CommandText = Regex.Replace(odbc.CommandText, @"\$(\d+)", place =>
            {
                var value = Parameters[int.Parse(place.Groups[1].Value) - 1].Value;
                odbc.Parameters.Add(new OdbcParameter { Value = value });
                return "?";
            });
            return Errors.Translated(odbc.ExecuteReader);
        }

        public void Dispose()
        {
            odbc.Dispose();
        }
    }

    static class Errors
    {
        internal static Task<T> Translated<T>(Func<T> call)
        {
            try
            {
                return Task.FromResult(call());
            }
            catch (InvalidOperationException error) when (error.InnerException is OdbcException)
            {
                throw new NpgsqlException(error.InnerException.Message);
            }
            catch (OdbcException error)
            {
                var state = error.Errors.Count > 0 ? error.Errors[0].SQLState : "";
                throw state.StartsWith("RQ")
                    ? new PostgresException(error.Message, state)
                    : new NpgsqlException(error.Message);
            }
        }
    }
}
