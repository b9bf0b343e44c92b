// The program's side of the protocol that benchmarks/studies/peers/__init__.py describes.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// Load packages from the virtual environment, next to this Node.js.
export const load = createRequire(process.execPath);

export function versionOf(name) {
    const packages = new URL("../../", pathToFileURL(process.execPath));
    return JSON.parse(readFileSync(new URL(`${name}/package.json`, packages), "utf8")).version;
}

const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function nextOrder() {
    const { value, done } = await orders.next();
    return done ? { stop: true } : JSON.parse(value);
}

function print(words) {
    process.stdout.write(JSON.stringify(words) + "\n");
}

// Wait for the write: a pipe takes 64 KiB at once, and an early exit would lose the remaining output.
function printAndExit(words) {
    process.stdout.write(JSON.stringify(words) + "\n", () => process.exit(0));
}

// Seconds since 1970, finer than the milliseconds of Date.
export function clock() {
    return (performance.timeOrigin + performance.now()) / 1000;
}

export class Histogram {
    counts = new Map();

    add(seconds) {
        const bucket = Math.floor(50 * Math.log(Math.max(seconds * 1e6, 1)));
        this.counts.set(bucket, (this.counts.get(bucket) ?? 0) + 1);
    }

    toJSON() {
        return Object.fromEntries(this.counts);
    }
}

class Handled {
    messages = 0;
    sum = 0;
    began = null;
    ended = null;
    latency = new Histogram();
    longest = 0;
    starts = [];

    handle(body) {
        const now = clock();
        const latency = now - body.t;
        this.began ??= now;
        this.ended = now;
        this.messages += 1;
        this.sum += body.n;
        if (body.k !== undefined) this.starts.push([body.k, body.n, now]);
        this.latency.add(latency);
        this.longest = Math.max(this.longest, latency);
    }

    forgetLatencies() {
        this.latency = new Histogram();
        this.longest = 0;
    }

    result() {
        return {
            messages: this.messages,
            sum: this.sum,
            began: this.began,
            ended: this.ended,
            latency_us: this.latency,
            latency_max_us: this.longest * 1e6,
            starts: this.starts,
        };
    }
}

// Returns a function that makes the body of message n.
function bodies(sizes, keys) {
    const pads = sizes.flatMap(([bytes, count]) =>
        Array(count).fill("x".repeat(Math.max(bytes - 52, 0))),
    );
    return (n) => ({
        t: clock(),
        n,
        pad: pads[n % pads.length],
        ...(keys > 0 && { k: `key ${n % keys}` }),
    });
}

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function produce(config, send, stopped) {
    const { messages, rate, bulk, first, seconds } = config;
    const make = bodies(config.bodies, config.keys);
    const calls = new Histogram();
    const began = clock();
    let sent = 0;
    for (let call = 0; sent < messages && !stopped.now; call += 1) {
        if (rate > 0) {
            const wait = began + (call * bulk) / rate - clock();
            if (wait > 0) await sleep(wait);
        }
        const started = clock();
        if (started - began >= seconds) break;
        const count = Math.min(bulk, messages - sent);
        await send(Array.from({ length: count }, (_, i) => make(first + sent + i)));
        calls.add(clock() - started);
        sent += count;
    }
    return { messages: sent, began, ended: clock(), call_us: calls };
}

async function consume(begin, stopped) {
    const handled = new Handled();
    stopped.onMark = () => handled.forgetLatencies();
    const end = await begin((body) => handled.handle(body));
    let reported = 0;
    const reporter = setInterval(() => {
        if (handled.messages > reported) print({ handled: (reported = handled.messages) });
    }, 50);
    await stopped.promise;
    await end();
    clearInterval(reporter);
    return handled.result();
}

// Handles orders until stop.
async function listen(stopped) {
    for (let order = await nextOrder(); !order.stop; order = await nextOrder()) {
        if (order.mark) stopped.onMark();
    }
    stopped.now = true;
}

// Runs the role named on the command line. roles has
//     prepare(config)    returns the result
//     produce(config)    returns {send, close}; send takes the bodies of one call
//     consume(config)    returns {begin, close}; begin takes the handler of a body, and returns a
//                        function that stops
export async function main(roles) {
    const role = process.argv[2];
    const config = await nextOrder();
    if (role === "prepare") {
        printAndExit(await roles.prepare(config));
        return;
    }
    const peer = await roles[role](config);
    print({ ready: true });
    await nextOrder();
    const stopped = { now: false, onMark() {} };
    stopped.promise = listen(stopped);
    const result =
        role === "produce"
            ? await produce(config, peer.send, stopped)
            : await consume(peer.begin, stopped);
    await peer.close();
    printAndExit(result);
}
