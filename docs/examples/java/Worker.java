// A rowq worker, see docs/examples/README.md: java Worker QUEUE_NAME
import java.lang.management.ManagementFactory;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;

public class Worker {
    // step 1: set the worker's name, the batch size and the length of the lease.
    final String name = ManagementFactory.getRuntimeMXBean().getName();
    final int batchSize = 10;
    final int leaseSeconds = Integer.parseInt(System.getenv().getOrDefault("LEASE_SECONDS", "30"));
    final Object[] batch = {batchSize, name, leaseSeconds};

    final String queue;
    final CountDownLatch stop = new CountDownLatch(1);
    final ScheduledExecutorService beside = Executors.newScheduledThreadPool(2);

    interface Loop {
        void run(Database database) throws Exception;
    }

    Worker(String queue) {
        this.queue = queue;
    }

    /** Handle a message. An exception means a retry. */
    void handle(Message message) throws Exception {
        Thread.sleep((long) (1000 * message.number("seconds")));
        if (message.number("fail") == 1 && message.attempt() == 1) {
            throw new Exception("order %.0f fails at its first attempt".formatted(message.number("order")));
        }
    }

    public static void main(String[] arguments) {
        Worker worker = new Worker(arguments[0]);
        // step 2: a signal sets a flag that ends the loops.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            worker.stop.countDown();
            new CompletableFuture<>().join(); // The process ends below.
        }));
        int status = 0;
        try {
            worker.beside.submit(() -> {
                worker.connected(worker::maintain);
                return null;
            });
            worker.connected(worker::work);
        } catch (Exception error) {
            error.printStackTrace();
            status = 1;
        }
        Runtime.getRuntime().halt(status); // Otherwise the status after a signal is 143.
    }

    // step 3: if the connection is lost, open a new one after a growing pause.
    void connected(Loop loop) throws Exception {
        long pause = 100;
        while (!isStopping()) {
            try (Database database = new Database(System.getenv("DATABASE_URL"))) {
                pause = 100;
                loop.run(database);
            } catch (SQLException error) {
                // For example an unknown queue: waiting does not help.
                if (Database.isRefused(error, "7..")) throw error;
                System.err.printf("%s; next try in %d ms%n", error.getMessage(), pause);
                stop.await(pause, TimeUnit.MILLISECONDS);
                pause = Math.min(2 * pause, 5000);
            }
        }
    }

    // step 4: call maintain once a second, on its own connection.
    void maintain(Database database) throws Exception {
        do {
            database.call("maintain", queue, 1000).close();
        } while (!stop.await(1, TimeUnit.SECONDS));
    }

    void work(Database database) throws Exception {
        long idle = 50;
        Queue<Message> messages = new ArrayDeque<>();
        while (!isStopping() || !messages.isEmpty()) {
            // step 5: lease a batch; the call is its own transaction.
            if (messages.isEmpty()) messages = database.dequeue(queue, batch);
            // step 6: poll an empty queue with growing pauses.
            if (messages.isEmpty()) {
                stop.await(idle, TimeUnit.MILLISECONDS);
                idle = Math.min(2 * idle, 1000);
                continue;
            }
            idle = 50;
            try {
                messages = workOn(database, messages.peek().claim(), messages);
            } catch (SQLException error) {
                // The lease expired, and another worker has the messages.
                if (!Database.isRefused(error, "721")) throw error;
                messages.clear();
            }
        }
    }

    /** Handle the messages of one claim in turn, and return the next ones. */
    Queue<Message> workOn(Database database, long claim, Queue<Message> messages) throws SQLException {
        List<Message> done = new ArrayList<>();
        // step 7: extend the lease while the messages of the claim are handled.
        AtomicBoolean isLost = new AtomicBoolean();
        long third = 1000L * leaseSeconds / 3;
        Future<?> heartbeat = beside.scheduleAtFixedRate(() -> {
            try {
                database.call("extend_lease", queue, claim, leaseSeconds, null).close();
            } catch (SQLException error) {
                isLost.set(true);
            }
        }, third, third, TimeUnit.MILLISECONDS);
        try {
            // step 8: start no message after a signal, or after the claim is lost.
            while (!messages.isEmpty() && !isStopping()) {
                if (isLost.get()) return new ArrayDeque<>();

                // step 9: handle the message idempotently: a killed worker may have done it before.
                Message message = messages.remove();
                try {
                    handle(message);
                    done.add(message);
                } catch (Exception error) {
                    // step 10: retry a failed message after a growing delay.
                    String ids = database.ids(List.of(message));
                    database.call("retry_later", queue, claim, ids, null, error.toString()).close();
                }
            }
            // step 11: complete messages with their claim id, and lease the next ones in the same call.
            Queue<Message> next = new ArrayDeque<>();
            if (!done.isEmpty()) next = database.complete(queue, claim, done, isStopping() ? null : batch);
            for (Message message : done) {
                System.out.printf("done %s %d %d%n", queue, message.id(), message.attempt());
            }

            // step 12: release messages that are not started; no attempt is spent.
            if (!messages.isEmpty()) database.call("release", queue, claim, null, null).close();
            return next;
        } finally {
            heartbeat.cancel(false);
        }
    }

    boolean isStopping() {
        return stop.getCount() == 0;
    }
}
