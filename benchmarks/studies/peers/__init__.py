"""Studies other people's queues and rowq, each run by its own programs with its documented client.

A peer is described by a `Peer` (peer.py; the list is in registry.py) and driven by a program in any
language. The harness starts `<program> <role>` as a process for each role, and speaks JSON with it,
one object a line, UTF-8: the configuration and orders on its standard input, what it tells on its
standard output. Standard error is kept and shown if the process fails (exit status not 0).

The talk
    1. harness -> program   the configuration, below; a program ignores fields it does not need
    2. program -> harness   {"ready": true}       connected, imported, warmed up; nothing done yet.
                            `prepare` leaves this out: it works at once and prints its result.
    3. harness -> program   {"go": true}          begin
    4. program -> harness   {"handled": 1234}     `consume` only: handlers that have returned so far
                            in this process, about every 50 ms while that number grows
       harness -> program   {"mark": true}        `consume` only, at any time after go: forget the
                            latencies so far, and only these
    5. harness -> program   {"stop": true}        `consume`, `keep`, and `produce` to cut it short:
                            finish what runs, acknowledge it, give the rest back, go on with 6.
                            The end of standard input means the same.
    6. program -> harness   the result; then the process ends with status 0 within 10 seconds

The roles
    prepare     create the client's database objects in an empty database and the queue `queue`, as
                the client's manual says. Result {"prepared": true, "version": "1.2.3"}, the version
                of the client, as installed.
    produce     add `messages` messages: at `rate` a second, or as fast as it can if `rate` is 0;
                `bulk` messages by one call of the client's bulk function (the last call may have
                fewer), or if `bulk` is 1 one by one by its plain function. Each call is a
                transaction. At a rate, call number i is due at start + i * bulk / rate; a late call
                is made at once. Stop after `seconds`. `delay_seconds` > 0: not due until then.
    consume     `workers` handlers at a time in this process, `batch` messages per fetch where the
                client knows such a thing (the nearest setting otherwise), acknowledged as the
                client does it. The handler does nothing but note its start: count 1, the number
                `n`, the latency now - `t`. Ends by the order to stop, not by itself.
    keep        only if the peer has `keeper`: the peer's own housekeeping process (a ticker), one
                for each run, from before the first `produce` until the end. Result {}.

The configuration
    role, url           the role; a libpq URL of the database, over a unix socket:
                        postgresql://postgres@/name?host=%2Fdirectory
    pg                  the same in parts: {"host": directory, "port": 5432, "user", "database"}
    queue               "bench"
    messages, rate, bulk, first, delay_seconds, bodies, seconds         for `produce`
    workers, batch                                                      for `consume`, `prepare`
                        (`prepare` gets the workers of all processes together, for peers that
                        create something for each worker)
    keys                0, or how many groups the messages are of: those of one group are handled
                        one at a time, first in, first out, as the client has it
    worker_number       0, 1, ..: which of the consuming processes this is

A message's body is the JSON object {"t": T, "n": N, "pad": "xxx"}: T the seconds since 1970 with at
least microseconds, taken just before the call that adds it; N = `first`, `first` + 1, ..; the pad
as long as the whole text needs to have about the length asked for; where `keys` is not 0, also
"k": "key 7", the message's group, of number N modulo `keys`. `bodies` is a list of
[bytes, count]: [[1000, 9], [100000, 1]] means nine of 1,000 bytes, then one of 100,000, and from
the start again.

Results (seconds are floats; CPU, buffers, WAL, sizes, queries are measured from outside)
    produce     {"messages": 1000, "began": T, "ended": T, "call_us": histogram}
                call_us: how long each call took, in microseconds
    consume     {"messages": 1000, "sum": sum of all N, "began": T or null, "ended": T or null,
                 "latency_us": histogram, "latency_max_us": 1234.5}
                began, ended: start of the first and of the last handler, seconds since 1970
                With `keys`, "starts": [[k, N, T], ...], what each handler was given, and when

A histogram is an object of buckets and counts: {"345": 12, "346": 3}. The bucket of a value of V
microseconds is floor(50 * ln(max(V, 1))), so a bucket is two per cent wide.
"""
