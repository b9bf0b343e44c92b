// A rowq worker, see docs/examples/README.md: dotnet run worker QUEUE_NAME
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Npgsql;
using Row = System.Collections.Generic.Dictionary<string, object>;

sealed class Worker
{
    // step 1: set the worker's name, the batch size and the length of the lease.
    readonly string name = $"{Environment.MachineName} {Process.GetCurrentProcess().Id}";
    readonly int batchSize = 10;
    readonly int leaseSeconds = int.Parse(Environment.GetEnvironmentVariable("LEASE_SECONDS") ?? "30");

    readonly string queue;
    readonly CancellationTokenSource stop = new CancellationTokenSource();

    public Worker(string queue)
    {
        this.queue = queue;
    }

    public async Task Run()
    {
        // step 2: a signal sets a flag that ends the loops.
        Action<PosixSignalContext> end = signal =>
        {
            signal.Cancel = true;
            stop.Cancel();
        };
        using (PosixSignalRegistration.Create(PosixSignal.SIGTERM, end))
        using (PosixSignalRegistration.Create(PosixSignal.SIGINT, end))
            await Task.WhenAll(Task.Run(() => Connected(Maintain)), Task.Run(() => Connected(Work)));
    }

    /// <summary>Wait, or return at a signal.</summary>
    Task Pause(int milliseconds)
    {
        return Task.WhenAny(Task.Delay(milliseconds, stop.Token));
    }

    // step 3: if the connection is lost, open a new one after a growing pause.
    async Task Connected(Func<NpgsqlConnection, Task> loop)
    {
        for (var pause = 100; !stop.IsCancellationRequested; pause = Math.Min(2 * pause, 5000))
        {
            try
            {
                using (var connection = await Database.Open())
                {
                    pause = 100;
                    await loop(connection);
                }
            }
            // Other errors, such as an unknown queue, are not caught: waiting does not help.
            catch (NpgsqlException error) when (!Database.IsRefused(error, "RQ7"))
            {
                Console.Error.WriteLine($"{error.Message}; next try in {pause} ms");
                await Pause(pause);
            }
        }
    }

    // step 4: call maintain once a second, on its own connection.
    async Task Maintain(NpgsqlConnection connection)
    {
        while (!stop.IsCancellationRequested)
        {
            await Database.Call(connection, "select from rowq.maintain($1)", queue);
            await Pause(1000);
        }
    }

    async Task Work(NpgsqlConnection connection)
    {
        var messages = new List<Row>();
        for (var idle = 50; !stop.IsCancellationRequested || messages.Count > 0; idle = Math.Min(2 * idle, 1000))
        {
            // step 5: lease a batch; the call is its own transaction.
            if (messages.Count == 0)
                messages = await Database.Call(connection,
                    "select claim_id, message_id, attempt, body from rowq.dequeue_fast($1, $2, $3, $4)",
                    queue, batchSize, name, leaseSeconds);

            // step 6: poll an empty queue with growing pauses.
            if (messages.Count == 0)
            {
                await Pause(idle);
                continue;
            }
            idle = 25;
            try
            {
                messages = await WorkOn(connection, (long)messages[0]["claim_id"], new Queue<Row>(messages));
            }
            catch (NpgsqlException error) when (Database.IsRefused(error, "RQ721"))
            {
                // The lease expired, and another worker has the messages.
                messages = new List<Row>();
            }
        }
    }

    /// <summary>Handle the messages of one claim in turn, and return the next ones.</summary>
    async Task<List<Row>> WorkOn(NpgsqlConnection connection, long claim, Queue<Row> messages)
    {
        var done = new List<Row>();
        // step 7: extend the lease while the messages of the claim are handled.
        using (var heartbeat = new Heartbeat(queue, claim, leaseSeconds))
        {
            // step 8: start no message after a signal, or after the claim is lost.
            while (messages.Count > 0 && !stop.IsCancellationRequested)
            {
                if (heartbeat.Claimed.IsCancellationRequested)
                    return new List<Row>();

                // step 9: handle the message idempotently: a killed worker may have done it before.
                var message = messages.Dequeue();
                try
                {
                    await Handler.Handle(message, heartbeat.Claimed);
                    done.Add(message);
                }
                catch (Exception error)
                {
                    // step 10: retry a failed message after a growing delay.
                    await Database.Call(connection,
                        "select from rowq.retry_later($1, $2, array[$3::bigint], p_error => $4)",
                        queue, claim, message["message_id"], error.Message);
                }
            }

            // step 11: complete messages with their claim id, and lease the next ones in the same call.
            var next = new List<Row>();
            var batch = stop.IsCancellationRequested ? null : new object[] { batchSize, name, leaseSeconds };
            if (done.Count > 0)
                next = await Database.Complete(connection, queue, claim, done, batch);
            foreach (var message in done)
                Console.WriteLine($"done {queue} {message["message_id"]} {message["attempt"]}");

            // step 12: release messages that are not started; no attempt is spent.
            if (messages.Count > 0)
                await Database.Call(connection, "select from rowq.release($1, $2)", queue, claim);
            return next;
        }
    }
}
