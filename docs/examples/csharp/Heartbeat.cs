using System;
using System.Threading;
using System.Threading.Tasks;
using Npgsql;

/// <summary>Extends the lease of a claim three times per lease until disposed.</summary>
sealed class Heartbeat : IDisposable
{
    readonly CancellationTokenSource end = new CancellationTokenSource();

    /// <summary>Ends if the lease could not be extended: other workers may have the messages.</summary>
    public CancellationToken Claimed => end.Token;

    public Heartbeat(string queue, long claim, int leaseSeconds)
    {
        Task.Run(() => Beat(queue, claim, leaseSeconds));
    }

    async Task Beat(string queue, long claim, int leaseSeconds)
    {
        try
        {
            while (true)
            {
                await Task.Delay(TimeSpan.FromSeconds(leaseSeconds / 3.0), end.Token);
                using (var connection = await Database.Open())
                    await Database.Call(connection,
                        "select from rowq.extend_lease($1, $2, $3)", queue, claim, leaseSeconds);
            }
        }
        catch (OperationCanceledException) { }
        catch (NpgsqlException)
        {
            end.Cancel();
        }
    }

    public void Dispose()
    {
        end.Cancel();
    }
}
