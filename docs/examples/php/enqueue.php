<?php

// Enqueues a message with its order: php enqueue.php QUEUE_NAME ORDER_NUMBER
declare(strict_types=1);

[, $queue, $orderNumber] = $argv + [1 => null, 2 => null];
$source = getenv('DATABASE_DSN');
if ($orderNumber === null || $source === false) {
    fwrite(STDERR, "usage: DATABASE_DSN=pgsql:host=... php enqueue.php QUEUE_NAME ORDER_NUMBER\n");
    exit(2);
}
$database = new PDO($source);

/** Store an order and enqueue its message in one transaction. */
function place(PDO $database, string $queue, int $number, float $total): void
{
    $database->beginTransaction();
    try {
        $database->prepare('insert into orders values (?, ?)')->execute([$number, $total]);

        $enqueue = $database->prepare(
            'select message_id, outcome from rowq.enqueue(p_queue_name => :queue, p_body => :body::text)'
        );
        $body = json_encode(['order' => $number, 'fail' => 0], JSON_THROW_ON_ERROR);
        $enqueue->execute(['queue' => $queue, 'body' => $body]);
        $sent = $enqueue->fetchObject();
        echo "order {$number}: {$sent->outcome} as message {$sent->message_id}\n";

        if ($total < 0) {
            throw new RangeException("order {$number} has a total of {$total}");
        }
        $database->commit();
    } catch (Throwable $error) {
        $database->rollBack();
        throw $error;
    }
}

$database->exec(
    'create table if not exists orders (order_number integer primary key, total decimal(12, 2))'
);
try {
    place($database, $queue, (int) $orderNumber, 11.77);
    place($database, $queue, (int) $orderNumber + 1, -1);
} catch (RangeException $error) {
    echo "{$error->getMessage()}: it was rolled back, and its message with it\n";
}
