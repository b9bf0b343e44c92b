// A worker of rowq, as docs/examples/README.md describes it: dotnet run worker QUEUE_NAME
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
    // step 1: say who you are, how many messages you want at a time, and for how long.
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
        // step 2: a signal asks the loops to end; it ends nothing by itself.
        Action<PosixSignalContext> end = signal =>
        {
            signal.Cancel = true;
            stop.Cancel();
        };
        using (PosixSignalRegistration.Create(PosixSignal.SIGTERM, end))
        using (PosixSignalRegistration.Create(PosixSignal.SIGINT, end))
            await Task.WhenAll(Task.Run(() => Connected(KeepHouse)), Task.Run(() => Connected(Work)));
    }

    /// <summary>Wait so long, or until a signal.</summary>
    Task Pause(int milliseconds)
    {
        return Task.WhenAny(Task.Delay(milliseconds, stop.Token));
    }

    // step 3: when a connection is lost, open another one, after a pause that grows.
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
            // No queue of this name, say, is not caught: it does not help to wait.
            catch (NpgsqlException error) when (!Database.IsRefused(error, "RQ7"))
            {
                Console.Error.WriteLine($"{error.Message}; next try in {pause} ms");
                await Pause(pause);
            }
        }
    }

    // step 4: call maintain once a second, on a connection that no message can hold up.
    async Task KeepHouse(NpgsqlConnection connection)
    {
        while (!stop.IsCancellationRequested)
        {
            await Database.Call(connection, "select from rowq.maintain($1)", queue);
            await Pause(1000);
        }
    }

    async Task Work(NpgsqlConnection connection)
    {
        for (var idle = 50; !stop.IsCancellationRequested; idle = Math.Min(2 * idle, 1000))
        {
            // step 5: lease a batch; the call is a transaction of its own.
            var messages = await Database.Call(connection,
                "select claim_id, message_id, attempt, body from rowq.dequeue_fast($1, $2, $3, $4)",
                queue, batchSize, name, leaseSeconds);

            // step 6: while there is nothing, ask less and less often.
            if (messages.Count == 0)
            {
                await Pause(idle);
                continue;
            }
            idle = 25;
            try
            {
                await WorkOn(connection, (long)messages[0]["claim_id"], new Queue<Row>(messages));
            }
            catch (NpgsqlException error) when (Database.IsRefused(error, "RQ721"))
            {
                // The claim has run out: its messages are somebody else's.
            }
        }
    }

    /// <summary>Handle the messages of one claim, one after the other.</summary>
    async Task WorkOn(NpgsqlConnection connection, long claim, Queue<Row> messages)
    {
        // step 7: extend the lease long before its end, for as long as the claim is at work.
        using (var heartbeat = new Heartbeat(queue, claim, leaseSeconds))
        {
            // step 8: begin nothing after a signal, nor what is perhaps not yours any more.
            while (messages.Count > 0 && !stop.IsCancellationRequested)
            {
                if (heartbeat.Claimed.IsCancellationRequested)
                    return;

                // step 9: do the work. It may have been done before, by a worker that was killed then.
                var message = messages.Dequeue();
                var id = message["message_id"];
                try
                {
                    await Handler.Handle(message, heartbeat.Claimed);
                }
                catch (Exception error)
                {
                    // step 10: what failed gets another attempt, after a delay that grows.
                    await Database.Call(connection,
                        "select from rowq.retry_later($1, $2, array[$3::bigint], p_error => $4)",
                        queue, claim, id, error.Message);
                    continue;
                }

                // step 11: what is done is completed, by the claim that still has it.
                var done = await Database.Call(connection,
                    "select outcome from rowq.complete($1, $2, array[$3::bigint])", queue, claim, id);
                if ((string)done[0]["outcome"] == "completed")
                    Console.WriteLine($"done {queue} {id} {message["attempt"]}");
            }

            // step 12: give back what you have not begun; no attempt is spent.
            if (messages.Count > 0)
                await Database.Call(connection, "select from rowq.release($1, $2)", queue, claim);
        }
    }
}
