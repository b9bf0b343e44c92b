<?php

// Database functions of the worker and its maintenance process.
declare(strict_types=1);

/** Run a loop with a connection; if it is lost, reconnect after a growing pause. */
function connected(string $source, Closure $isOver, Closure $loop): void
{
    for ($pause = 0.1; !$isOver(); $pause = min(2 * $pause, 5.0)) {
        try {
            $database = new PDO($source);
            $pause = 0.1;
            $loop($database);
        } catch (PDOException $error) {
            if (isRefused($error)) {
                throw $error; // For example an unknown queue: waiting does not help.
            }
            fwrite(STDERR, "{$error->getMessage()}; next try in $pause s\n");
            usleep((int) (1e6 * $pause));
        }
    }
}

/** Call a routine with its first arguments, and return its rows. */
function call(PDO $database, string $routine, array $arguments): array
{
    $marks = implode(', ', array_fill(0, count($arguments), '?'));
    $statement = $database->prepare("select * from rowq.$routine($marks)");
    $statement->execute(array_values($arguments));
    return $statement->fetchAll(PDO::FETCH_OBJ);
}

/** Return whether rowq refused a call, with this number if one is passed. */
function isRefused(PDOException $error, string $number = 'RQ7'): bool
{
    return str_starts_with((string) $error->getCode(), $number);
}
