using System;
using System.Threading.Tasks;

static class Program
{
    static int Main(string[] arguments)
    {
        if (arguments.Length == 2 && arguments[0] == "worker")
            new Worker(arguments[1]).Run().GetAwaiter().GetResult();
        else if (arguments.Length == 3 && arguments[0] == "enqueue")
            Enqueue.Run(arguments[1], int.Parse(arguments[2])).GetAwaiter().GetResult();
        else if (arguments.Length == 3 && arguments[0] == "sqlserver")
            SqlServer.Run(arguments[1], int.Parse(arguments[2])).GetAwaiter().GetResult();
        else
        {
            Console.Error.WriteLine("usage: dotnet run worker QUEUE_NAME");
            Console.Error.WriteLine("       dotnet run enqueue|sqlserver QUEUE_NAME ORDER_NUMBER");
            return 2;
        }
        return 0;
    }
}
