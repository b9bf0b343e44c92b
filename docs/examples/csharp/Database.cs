using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Npgsql;

/// <summary>A pooled connection, and its statements.</summary>
static class Database
{
    public static async Task<NpgsqlConnection> Open()
    {
        var connection = new NpgsqlConnection(Environment.GetEnvironmentVariable("CONNECTION_STRING"));
        try
        {
            await connection.OpenAsync();
            return connection;
        }
        catch
        {
            connection.Dispose();
            throw;
        }
    }

    /// <summary>Run a statement with values for $1, $2... and return its rows.</summary>
    public static async Task<List<Dictionary<string, object>>> Call(
        NpgsqlConnection connection, string statement, params object[] values)
    {
        using (var command = new NpgsqlCommand(statement, connection))
        {
            foreach (var value in values)
                command.Parameters.Add(new NpgsqlParameter { Value = value });
            using (var reader = await command.ExecuteReaderAsync())
            {
                var rows = new List<Dictionary<string, object>>();
                while (await reader.ReadAsync())
                {
                    var row = new Dictionary<string, object>();
                    for (var column = 0; column < reader.FieldCount; column++)
                        row[reader.GetName(column)] = reader.GetValue(column);
                    rows.Add(row);
                }
                return rows;
            }
        }
    }

    /// <summary>Whether rowq refused a call, with a number that begins so.</summary>
    public static bool IsRefused(NpgsqlException error, string number)
    {
        return error is PostgresException refusal && refusal.SqlState.StartsWith(number);
    }
}
