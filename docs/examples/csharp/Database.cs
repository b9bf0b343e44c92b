using System;
using System.Collections.Generic;
using System.Data;
using System.Linq;
using System.Threading.Tasks;
using Npgsql;
using Row = System.Collections.Generic.Dictionary<string, object>;

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
    public static async Task<List<Row>> Call(
        NpgsqlConnection connection, string statement, params object[] values)
    {
        using (var command = new NpgsqlCommand(statement, connection))
        {
            foreach (var value in values)
                command.Parameters.Add(new NpgsqlParameter { Value = value });
            using (var reader = await command.ExecuteReaderAsync())
            {
                var rows = new List<Row>();
                while (await reader.ReadAsync())
                {
                    var row = new Row();
                    for (var column = 0; column < reader.FieldCount; column++)
                        row[reader.GetName(column)] = reader.GetValue(column);
                    rows.Add(row);
                }
                return rows;
            }
        }
    }

    /// <summary>Complete messages, remove the stale ones from the list, and return the next ones; without a
    /// batch, or on an error, only complete.</summary>
    public static async Task<List<Row>> Complete(
        NpgsqlConnection connection, string queue, long claim, List<Row> done, object[] batch)
    {
        var ids = $"{{{string.Join(",", done.Select(row => row["message_id"]))}}}";
        List<Row> rows = null;
        if (batch != null)
            try
            {
                rows = await Call(connection,
                    "select outcome, claim_id, message_id, attempt, body"
                    + " from rowq.complete_and_dequeue($1, $2, $3::text::bigint[], null, $4, $5, $6)",
                    queue, claim, ids, batch[0], batch[1], batch[2]);
            }
            catch (NpgsqlException error) when (connection.State == ConnectionState.Open)
            {
                Console.Error.WriteLine($"{error.Message}; completing only");
            }
        if (rows == null)
            rows = await Call(connection,
                "select outcome, message_id from rowq.complete($1, $2, $3::text::bigint[])", queue, claim, ids);
        foreach (var row in rows.Where(row => (string)row["outcome"] == "stale"))
            done.RemoveAll(one => one["message_id"].Equals(row["message_id"]));
        return rows.Where(row => (string)row["outcome"] == "leased").ToList();
    }

    /// <summary>Whether rowq refused a call, with a number that begins so.</summary>
    public static bool IsRefused(NpgsqlException error, string number)
    {
        return error is PostgresException refusal && refusal.SqlState.StartsWith(number);
    }
}
