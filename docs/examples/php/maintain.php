<?php

// A process beside the worker: PHP does one thing at a time, and a handler may take long.
declare(strict_types=1);

require_once __DIR__ . '/database.php';

/**
 * Calls maintain once a second, and extends the lease of one claim three times in a lease. It has a
 * connection of its own, and ends with the worker, however that ends.
 */
final class Maintainer
{
    /** @var resource leads from the worker to the maintainer, and back */
    private $line;
    private int $claim = 0;

    public function __construct(string $source, private string $queue, private int $leaseSeconds)
    {
        $worker = getmypid();
        [$here, $there] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $maintainer = pcntl_fork();
        if ($maintainer === -1) {
            throw new RuntimeException('no process beside the worker can be made');
        }
        if ($maintainer !== 0) {
            $this->line = $here;
            stream_set_blocking($here, false);
            return;
        }
        $this->line = $there;
        unset($here);
        // A signal is for the worker, which has the maintainer go on until its message is finished.
        pcntl_signal(SIGTERM, SIG_IGN);
        pcntl_signal(SIGINT, SIG_IGN);
        $isAlone = fn () => posix_getppid() !== $worker;
        connected($source, $isAlone, fn (PDO $database) => $this->keep($database, $isAlone));
        exit(0);
    }

    /** In the worker: have the lease of this claim extended from now on; 0 is none. */
    public function watch(int $claim): void
    {
        $this->claim = $claim;
        if (fwrite($this->line, "$claim\n") === false) {
            throw new RuntimeException('the maintainer has ended');
        }
    }

    /** In the worker: tell whether the lease of the claim could not be extended. */
    public function hasLost(): bool
    {
        return (int) fgets($this->line) === $this->claim;
    }

    private function keep(PDO $database, Closure $isOver): void
    {
        for ($house = $beat = 0.0; !$isOver();) {
            $now = hrtime(true) / 1e9;
            if ($now >= $house) {
                call($database, 'maintain', [$this->queue]);
                $house = $now + 1;
            }
            if ($this->claim && $now >= $beat) {
                $this->extend($database);
                $beat = $now + $this->leaseSeconds / 3;
            }
            [$read, $none] = [[$this->line], null];
            $next = ($this->claim ? min($house, $beat) : $house) - hrtime(true) / 1e9;
            if (stream_select($read, $none, $none, 0, (int) max(0, 1e6 * $next))) {
                $this->claim = (int) fgets($this->line);
                $beat = hrtime(true) / 1e9 + $this->leaseSeconds / 3;
            }
        }
    }

    private function extend(PDO $database): void
    {
        try {
            call($database, 'extend_lease', [$this->queue, $this->claim, $this->leaseSeconds]);
        } catch (PDOException $error) {
            if (!isRefused($error, 'RQ721')) {
                throw $error;
            }
            fwrite($this->line, "{$this->claim}\n");
            $this->claim = 0;
        }
    }
}
