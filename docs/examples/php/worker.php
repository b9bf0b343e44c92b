<?php

// A worker of rowq, as docs/examples/README.md describes it: php worker.php QUEUE_NAME
declare(strict_types=1);

require_once __DIR__ . '/database.php';
require_once __DIR__ . '/maintain.php';

[, $queue] = $argv + [1 => null];
$source = getenv('DATABASE_DSN');
if ($queue === null || $source === false) {
    fwrite(STDERR, "usage: DATABASE_DSN='pgsql:host=...' php worker.php QUEUE_NAME\n");
    exit(2);
}

// step 1: say who you are, how many messages you want at a time, and for how long.
$workerName = gethostname() . ' ' . getmypid();
$batchSize = 10;
$leaseSeconds = (int) (getenv('LEASE_SECONDS') ?: 30);

/** What the worker is there for. An exception means another attempt. */
function handle(object $message): void
{
    $content = json_decode($message->body, flags: JSON_THROW_ON_ERROR);
    usleep((int) (1e6 * ($content->seconds ?? 0)));
    if (($content->fail ?? 0) && $message->attempt === 1) {
        throw new RuntimeException("order {$content->order} fails at its first attempt");
    }
}

// step 2: a signal asks the loop to end; it ends nothing by itself.
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

// step 3: when a connection is lost, open another one, after a pause that grows.
$keepConnected = fn (Closure $loop) => connected($source, $isOver, $loop);

// step 4: call maintain once a second, on a connection that no message can hold up.
$maintainer = new Maintainer($source, $queue, $leaseSeconds);

$work = function (PDO $database) use ($isOver, $maintainer, $queue, $batchSize, $workerName, $leaseSeconds) {
    $idle = 0.05;
    while (!$isOver()) {
        // step 5: lease a batch; the call is a transaction of its own.
        $wanted = [$queue, $batchSize, $workerName, $leaseSeconds];
        $messages = call($database, 'dequeue_fast', $wanted);

        // step 6: while there is nothing, ask less and less often.
        if (!$messages) {
            usleep((int) (1e6 * $idle));
            $idle = min(2 * $idle, 1.0);
            continue;
        }
        $idle = 0.05;
        try {
            // step 7: extend the lease long before its end, for as long as the claim is at work.
            $maintainer->watch($messages[0]->claim_id);
            workOn($database, $queue, $messages, $isOver, $maintainer);
        } catch (PDOException $error) {
            // The claim has run out: its messages are somebody else's.
            if (!isRefused($error, 'RQ721')) {
                throw $error;
            }
        } finally {
            $maintainer->watch(0);
        }
    }
};

/** Handle the messages of one claim, one after the other. */
function workOn(PDO $database, string $queue, array $messages, Closure $isOver, Maintainer $maintainer): void
{
    $claim = $messages[0]->claim_id;
    // step 8: begin nothing after a signal, nor what is perhaps not yours any more.
    while ($messages && !$isOver()) {
        if ($maintainer->hasLost()) {
            return;
        }

        // step 9: do the work. It may have been done before, by a worker that was killed then.
        $message = array_shift($messages);
        $ids = '{' . $message->message_id . '}';
        try {
            handle($message);
        } catch (Throwable $error) {
            // step 10: what failed gets another attempt, after a delay that grows.
            call($database, 'retry_later', [$queue, $claim, $ids, null, $error->getMessage()]);
            continue;
        }

        // step 11: what is done is completed, by the claim that still has it.
        [$done] = call($database, 'complete', [$queue, $claim, $ids]);
        if ($done->outcome === 'completed') {
            echo "done $queue {$message->message_id} {$message->attempt}\n";
        }
    }

    // step 12: give back what you have not begun; no attempt is spent.
    if ($messages) {
        call($database, 'release', [$queue, $claim]);
    }
}

$keepConnected($work);
