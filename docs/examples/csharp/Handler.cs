using System;
using System.Collections.Generic;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

static class Handler
{
    /// <summary>Handle a message. An exception means a retry.</summary>
    public static async Task Handle(Dictionary<string, object> message, CancellationToken claimed)
    {
        using (var document = JsonDocument.Parse((string)message["body"]))
        {
            var order = document.RootElement;
            JsonElement seconds;
            if (order.TryGetProperty("seconds", out seconds))
                await Task.Delay(TimeSpan.FromSeconds(seconds.GetDouble()), claimed);
            if (order.GetProperty("fail").GetInt32() == 1 && (int)message["attempt"] == 1)
                throw new Exception($"order {order.GetProperty("order")} fails at its first attempt");
        }
    }
}
