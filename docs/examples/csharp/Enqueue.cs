// Enqueues a message with its order: dotnet run enqueue QUEUE_NAME ORDER_NUMBER
using System;
using System.Text.Json;
using System.Threading.Tasks;
using Npgsql;

static class Enqueue
{
    public static async Task Run(string queue, int number)
    {
        using (var connection = await Database.Open())
        {
            await Database.Call(connection, "create table if not exists orders"
                + " (order_number integer primary key, total decimal(12, 2))");
            try
            {
                await Place(connection, queue, number, 11.77m);
                await Place(connection, queue, number + 1, -1m);
            }
            catch (InvalidOrder error)
            {
                Console.WriteLine(error.Message + ": it was rolled back, and its message with it");
            }
        }
    }

    /// <summary>Store an order and enqueue its message in one transaction.</summary>
    static async Task Place(NpgsqlConnection connection, string queue, int number, decimal total)
    {
        using (var transaction = connection.BeginTransaction()) // Rolled back unless committed.
        {
            await Database.Call(connection, "insert into orders values ($1, $2)", number, total);
            var body = JsonSerializer.Serialize(new { order = number, fail = 0 });
            var sent = await Database.Call(connection,
                "select * from rowq.enqueue(p_queue_name => $1, p_body => $2::text)", queue, body);
            Console.WriteLine($"order {number}: {sent[0]["outcome"]} as message {sent[0]["message_id"]}");
            if (total < 0)
                throw new InvalidOrder($"order {number} has a total of {total}");
            transaction.Commit();
        }
    }

    sealed class InvalidOrder : Exception
    {
        public InvalidOrder(string message) : base(message) { }
    }
}
