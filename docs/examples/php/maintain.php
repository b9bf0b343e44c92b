<?php

// A process for maintenance and heartbeats, because PHP runs one thing at a time.
declare(strict_types=1);

require_once __DIR__ . '/database.php';

/**
 * Calls maintain once a second, and extends the lease of one claim three times per lease. It has its
 * own connection, and ends with the worker, even if that is killed.
 */
final class Maintainer
{
    /** @var resource connects the worker and the maintenance process */
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
        // Ignore signals: the worker needs this process until its message is finished.
        pcntl_signal(SIGTERM, SIG_IGN);
        pcntl_signal(SIGINT, SIG_IGN);
        $isAlone = fn () => posix_getppid() !== $worker;
        connected($source, $isAlone, fn (PDO $database) => $this->keep($database, $isAlone));
        exit(0);
    }

    /** In the worker: extend the lease of this claim from now on; 0 for none. */
    public function watch(int $claim): void
    {
        $this->claim = $claim;
        if (fwrite($this->line, "$claim\n") === false) {
            throw new RuntimeException('the maintenance process has ended');
        }
    }

    /** In the worker: return whether the lease could not be extended. */
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
