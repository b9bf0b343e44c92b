// Replacements for .NET classes that Mono lacks, with the members that the example uses.
using System;
using System.Globalization;
using System.Linq;
using System.Text.RegularExpressions;
using System.Threading;
using Mono.Unix;
using Mono.Unix.Native;

namespace System.Runtime.InteropServices
{
    public enum PosixSignal
    {
        SIGINT = -2,
        SIGTERM = -4,
    }

    public sealed class PosixSignalContext
    {
        public bool Cancel { get; set; }
    }

    public sealed class PosixSignalRegistration : IDisposable
    {
        public static PosixSignalRegistration Create(
            PosixSignal which, Action<PosixSignalContext> handler)
        {
            var signal = new UnixSignal(which == PosixSignal.SIGINT ? Signum.SIGINT : Signum.SIGTERM);
            new Thread(() =>
            {
                while (signal.WaitOne())
                    handler(new PosixSignalContext());
            })
            { IsBackground = true }.Start();
            return new PosixSignalRegistration();
        }

        public void Dispose() { }
    }
}

namespace System.Text.Json
{
    public static class JsonSerializer
    {
        /// <summary>Write an object with numeric properties.</summary>
        public static string Serialize(object value)
        {
            var members = value.GetType().GetProperties()
                .Select(one => $"\"{one.Name}\":{one.GetValue(value)}");
            return "{" + string.Join(",", members) + "}";
        }
    }

    public sealed class JsonDocument : IDisposable
    {
        public JsonElement RootElement { get; private set; }

        public static JsonDocument Parse(string json)
        {
            return new JsonDocument { RootElement = new JsonElement(json) };
        }

        public void Dispose() { }
    }

    /// <summary>A JSON object with numeric members, or a member.</summary>
    public struct JsonElement
    {
        readonly string json;

        internal JsonElement(string json)
        {
            this.json = json;
        }

        public bool TryGetProperty(string name, out JsonElement value)
        {
            var found = Regex.Match(json, $"\"{name}\": *([0-9.]+)");
            value = new JsonElement(found.Groups[1].Value);
            return found.Success;
        }

        public JsonElement GetProperty(string name)
        {
            JsonElement value;
            if (!TryGetProperty(name, out value))
                throw new InvalidOperationException(name);
            return value;
        }

        public int GetInt32()
        {
            return int.Parse(json, CultureInfo.InvariantCulture);
        }

        public double GetDouble()
        {
            return double.Parse(json, CultureInfo.InvariantCulture);
        }

        public override string ToString()
        {
            return json;
        }
    }
}
