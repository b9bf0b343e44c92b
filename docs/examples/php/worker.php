<?php

// A rowq worker, see docs/examples/README.md: php worker.php QUEUE_NAME
declare(strict_types=1);

require_once __DIR__ . '/database.php';
require_once __DIR__ . '/maintain.php';

[, $queue] = $argv + [1 => null];
$source = getenv('DATABASE_DSN');
if ($queue === null || $source === false) {
    fwrite(STDERR, "usage: DATABASE_DSN='pgsql:host=...' php worker.php QUEUE_NAME\n");
    exit(2);
}

// step 1: set the worker's name, the batch size and the length of the lease.
$workerName = gethostname() . ' ' . getmypid();
$batchSize = 10;
$leaseSeconds = (int) (getenv('LEASE_SECONDS') ?: 30);

/** Handle a message. An exception means a retry. */
function handle(object $message): void
{
    $content = json_decode($message->body, flags: JSON_THROW_ON_ERROR);
    usleep((int) (1e6 * ($content->seconds ?? 0)));
    if (($content->fail ?? 0) && $message->attempt === 1) {
        throw new RuntimeException("order {$content->order} fails at its first attempt");
    }
}

// step 2: a signal sets a flag that ends the loop.
$isStopping = false;
pcntl_async_signals(true);
foreach ([SIGTERM, SIGINT] as $signal) {
    pcntl_signal($signal, function () use (&$isStopping) {
        $isStopping = true;
    });
}
$isOver = function () use (&$isStopping): bool {
    return $isStopping;
};

// step 3: if the connection is lost, open a new one after a growing pause.
$keepConnected = fn (Closure $loop) => connected($source, $isOver, $loop);

// step 4: call maintain once a second, on its own connection.
$maintainer = new Maintainer($source, $queue, $leaseSeconds);

$work = function (PDO $database) use ($isOver, $maintainer, $queue, $batchSize, $workerName, $leaseSeconds) {
    $idle = 0.05;
    $messages = [];
    $wanted = [$batchSize, $workerName, $leaseSeconds];
    while (!$isOver() || $messages) {
        // step 5: lease a batch; the call is its own transaction.
        $messages = $messages ?: call($database, 'dequeue_fast', [$queue, ...$wanted]);

        // step 6: poll an empty queue with growing pauses.
        if (!$messages) {
            usleep((int) (1e6 * $idle));
            $idle = min(2 * $idle, 1.0);
            continue;
        }
        $idle = 0.05;
        try {
            // step 7: extend the lease while the messages of the claim are handled.
            $maintainer->watch($messages[0]->claim_id);
            $messages = workOn($database, $queue, $messages, $wanted, $isOver, $maintainer);
        } catch (PDOException $error) {
            // The lease expired, and another worker has the messages.
            if (!isRefused($error, 'RQ721')) {
                throw $error;
            }
            $messages = [];
        } finally {
            $maintainer->watch(0);
        }
    }
};

/** Handle the messages of one claim in turn, and return the next ones. */
function workOn(
    PDO $database,
    string $queue,
    array $messages,
    array $wanted,
    Closure $isOver,
    Maintainer $maintainer,
): array {
    $claim = $messages[0]->claim_id;
    $done = [];
    // step 8: start no message after a signal, or after the claim is lost.
    while ($messages && !$isOver()) {
        if ($maintainer->hasLost()) {
            return [];
        }

        // step 9: handle the message idempotently: a killed worker may have done it before.
        $message = array_shift($messages);
        try {
            handle($message);
            $done[$message->message_id] = $message;
        } catch (Throwable $error) {
            // step 10: retry a failed message after a growing delay.
            $ids = '{' . $message->message_id . '}';
            call($database, 'retry_later', [$queue, $claim, $ids, null, $error->getMessage()]);
        }
    }

    // step 11: complete messages with their claim id, and lease the next ones in the same call.
    $next = $done ? complete($database, [$queue, $claim], $done, $isOver() ? null : $wanted) : [];

    // step 12: release messages that are not started; no attempt is spent.
    if ($messages) {
        call($database, 'release', [$queue, $claim]);
    }
    return $next;
}

/** Complete messages and return the next ones; without $wanted, or on an error, only complete. */
function complete(PDO $database, array $claim, array $done, ?array $wanted): array
{
    $finished = [...$claim, '{' . implode(',', array_keys($done)) . '}', null];
    try {
        $rows = $wanted === null
            ? call($database, 'complete', $finished)
            : call($database, 'complete_and_dequeue', [...$finished, ...$wanted]);
    } catch (PDOException) {
        $rows = call($database, 'complete', $finished);
    }
    $next = [];
    foreach ($rows as $row) {
        if ($row->outcome === 'stale') {
            unset($done[$row->message_id]);
        } elseif ($row->outcome === 'leased') {
            $next[] = $row;
        }
    }
    foreach ($done as $message) {
        echo "done {$claim[0]} {$message->message_id} {$message->attempt}\n";
    }
    return $next;
}

$keepConnected($work);
