"""The experiments of five documents that describe queues in databases, as scenarios.

Each document ("seed") has a package here, `seed_000` to `seed_004`:

    seed_000/__init__.py       SEED, a `base.Seed`: title, forms, kinds, columns, targets
    seed_000/scenarios.toml    the numbers, in the words of ../../scenarios.toml, besides
                                   engines      where it runs; everywhere if nothing is said
                                   producers    sessions that only add messages, besides `sessions`
                                   body_bytes   greatest length of a body; uniform from 1
    seed_000/<engine>/<form>.sql    a form of queue, written by ourselves after the document

A *form* (`base.Form`) is what takes part, a `System` to the runner: name, origin, how it is
installed and how a session of it is opened. `base.sql_form(name, origin, folder, engine)` makes
one from `<folder>/<engine>/<name>.sql`; `base.rowq_form(engine)` is rowq. Names of forms are unique
over all seeds, `rowq` is the same everywhere. A form that is more than statements has a subclass of
`client.SqlClient` (`open_client=` of `sql_form`).

The .sql file has sections, each headed by a line `-- name: <section>`:

    install         the whole schema as one script, in the schema `seed` on PostgreSQL and in the
                    database `rowq_bench` on MariaDB, which are there already, and empty; on SQL
                    Server in the schema `dbo` of a fresh database, in batches that end with `go`;
                    on Oracle in the account's own schema, in units that end with a line of `/`
    enqueue         :body
    fill            :messages, a JSON array of {"body": ...}
    dequeue         :batch; columns: message id, body, and a claim if the form has one
    dequeue_held    the same inside a transaction that the caller has begun, if that is another text
    complete        :ids, a list: `= any (:ids)` on PostgreSQL, `in (:ids)` elsewhere; or :claim
    session         run once by every session; optional
    create          run once before the queue is filled; optional
    settle          what an administrator does after filling; optional, as `maintain` is
    maintain        housekeeping, called once a second

A form that differs little from another one says `-- like: <file>` at its head: it has the sections
of that file, too, and its own take the place of those. A line `-- part: <section>` stands for the
text of a section, so that another form can have that part of a script in its own words.

`session.Session` runs them: `run(statement, **values)` returns rows of bytes, prepared on
PostgreSQL and SQL Server, as text by libmariadb on MariaDB, by python-oracledb on Oracle, where
`:rows` stands for a cursor that a block hands back and `:returned` for a number; `script(text)`
runs a whole script. A deadlock, a lock timeout or a lost race of a strict isolation is a
`session.RetryError`; the client counts it as `deadlocks` and tries again. The client keeps the ids
of all messages it completed in `handled`.

A *kind* is a function `(dialect, url, form, scenario) -> figures`, run once for each form and
round in a fresh database; the runner turns the order of the forms with the round. `dialect`
(`dialects.Dialect`) opens sessions (`dialect.open(url)`) and observers (`dialect.observe(url)`).
An observer has `counts()` (the server's counters: reads, deadlocks, lock waits and seconds,
commits, log bytes, CPU), `look()` (notes who waits for a lock now; PostgreSQL has no counter of
waits) and `rows_locked(session)`. `work.work(dialect, url, form, scenario, control)` lets sessions
work and returns rates, CPU, log bytes, commits, deadlocks, lock waits, empty dequeues and double
runs; a kind adds its own figures.

Targets are `targets.Target`s, made from `results.Results` by `SEED.targets(engine, results)`. The
report shows for each scenario `SEED.columns[kind]` (figure: heading) of every form.
`all_seeds.py` lists the seeds.
"""
