// rowq on SQL Server: dotnet run sqlserver QUEUE_NAME ORDER_NUMBER. Not tested on SQL Server.
using System;
using System.Data;
using System.Threading.Tasks;
using Microsoft.Data.SqlClient;

static class SqlServer
{
    /// <summary>Enqueue a message with its order, then dequeue a message and complete it.</summary>
    public static async Task Run(string queue, int number)
    {
        using (var connection = new SqlConnection(Environment.GetEnvironmentVariable("CONNECTION_STRING")))
        {
            await connection.OpenAsync();
            using (var transaction = connection.BeginTransaction())
            {
                var order = "insert into orders (order_number, total) values (@number, @total)";
                using (var insert = new SqlCommand(order, connection, transaction))
                {
                    insert.Parameters.AddWithValue("@number", number);
                    insert.Parameters.AddWithValue("@total", 11.77m);
                    await insert.ExecuteNonQueryAsync();
                }
                using (var enqueue = Routine("rowq.Enqueue", connection, transaction))
                {
                    enqueue.Parameters.AddWithValue("@queue_name", queue);
                    enqueue.Parameters.AddWithValue("@body", $"{{\"order\": {number}, \"fail\": 0}}");
                    await enqueue.ExecuteNonQueryAsync();
                }
                transaction.Commit(); // Commits the order and its message together.
            }
            using (var dequeue = Routine("rowq.DequeueFast", connection))
            {
                dequeue.Parameters.AddWithValue("@queue_name", queue);
                long claim, id;
                using (var reader = await dequeue.ExecuteReaderAsync())
                {
                    if (!await reader.ReadAsync())
                        return;
                    claim = reader.GetInt64(reader.GetOrdinal("claim_id"));
                    id = reader.GetInt64(reader.GetOrdinal("message_id"));
                }
                await Complete(connection, queue, claim, id);
            }
        }
    }

    static async Task Complete(SqlConnection connection, string queue, long claim, long id)
    {
        using (var complete = Routine("rowq.Complete", connection))
        {
            complete.Parameters.AddWithValue("@queue_name", queue);
            complete.Parameters.AddWithValue("@claim_id", claim);
            complete.Parameters.AddWithValue("@message_ids", $"[{id}]");
            try
            {
                using (var reader = await complete.ExecuteReaderAsync())
                {
                    if (await reader.ReadAsync() && reader.GetString(reader.GetOrdinal("outcome")) == "completed")
                        Console.WriteLine($"done {queue} {id} 1");
                }
            }
            catch (SqlException error) when (error.Number == 52721)
            {
                // RQ721: the lease expired, and another worker has the message.
            }
        }
    }

    static SqlCommand Routine(string name, SqlConnection connection, SqlTransaction transaction = null)
    {
        return new SqlCommand(name, connection, transaction) { CommandType = CommandType.StoredProcedure };
    }
}
