#!/usr/bin/env bash
# A worker of rowq by psql and jq, as docs/examples/README.md describes it: worker.sh QUEUE_NAME
set -uo pipefail
queue=${1:?usage: worker.sh QUEUE_NAME}

# step 1: say who you are, how many messages you want at a time, and for how long.
worker="${HOSTNAME:-shell} $$"
batch_size=10
lease_seconds=${LEASE_SECONDS:-30}

# What this worker is there for: handle BODY ATTEMPT. A status other than 0 means another attempt.
handle() {
    local order seconds fail
    read -r order seconds fail < <(jq -r '"\(.order) \(.seconds // 0) \(.fail)"' <<<"$1") || return
    sleep "$seconds"
    if [[ $fail == 1 && $2 == 1 ]]; then
        echo "order $order fails at its first attempt" >&2
        return 1
    fi
}

# step 2: a signal asks the loop to end; bash looks at it between two commands.
stopping=
trap 'stopping=yes' TERM INT

# Run the statement on standard input. The status is 2 without a connection, 3 when rowq refuses.
call() {
    psql "${DATABASE_URL:?}" --no-psqlrc --quiet --no-align --tuples-only \
        --set ON_ERROR_STOP=1 --set queue="$queue" "$@"
}

pause() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# step 3: each call opens a connection; where there is none, go on after a pause that grows.
retry_ms=100
wait_for_database() {
    pause $retry_ms
    retry_ms=$((retry_ms < 2500 ? 2 * retry_ms : 5000))
}

# step 4: call maintain once a second, in a process that no message can hold up.
keep_house() {
    while sleep 1 && kill -0 $$; do
        call <<<"select rowq.maintain(:'queue')"
    done
}
keep_house >/dev/null 2>&1 &
housekeeper=$!
trap 'kill $housekeeper' EXIT

# Step 7 runs this beside the handler. It ends with the worker, however that ends, because a lease
# that is extended for ever keeps its messages from everybody.
extend_lease() {
    while sleep "$(jq -n "$lease_seconds / 3")" && kill -0 $$; do
        call --set claim="$1" --set lease="$lease_seconds" \
            <<<"select rowq.extend_lease(:'queue', :claim, :lease)" || break
    done
    kill -USR1 $$
}
trap 'is_lost=yes' USR1

idle_ms=50
while [[ -z $stopping ]]; do
    # step 5: lease a batch; the call is a transaction of its own. NULs part what may hold anything.
    mapfile -t -d '' fields < <(
        call --field-separator-zero --record-separator-zero --set size=$batch_size \
            --set worker="$worker" --set lease="$lease_seconds" <<<"
            select claim_id, message_id, attempt, body
            from rowq.dequeue_fast(:'queue', :size, :'worker', :lease)"
    )
    wait $!
    case $? in
        2) wait_for_database && continue ;;
        3) exit 1 ;; # No queue of this name, say: it does not help to wait.
    esac
    retry_ms=100

    # step 6: while there is nothing, ask less and less often.
    if ((${#fields[@]} == 0)); then
        pause $idle_ms
        idle_ms=$((idle_ms < 500 ? 2 * idle_ms : 1000))
        continue
    fi
    idle_ms=50
    claim=${fields[0]}

    # step 7: extend the lease long before its end, for as long as the claim is at work.
    is_lost=
    extend_lease "$claim" >/dev/null 2>&1 &
    heartbeat=$!

    while ((${#fields[@]} > 0)); do
        # step 8: begin nothing after a signal, nor what is perhaps not yours any more.
        [[ -n $is_lost || -n $stopping ]] && break

        # step 9: do the work. It may have been done before, by a worker that was killed then.
        id=${fields[1]} attempt=${fields[2]} body=${fields[3]}
        fields=("${fields[@]:4}")
        if ! error=$(handle "$body" "$attempt" 2>&1 >/dev/null); then
            # step 10: what failed gets another attempt, after a delay that grows.
            call --set claim="$claim" --set id="$id" --set error="$error" <<<"
                select from rowq.retry_later(:'queue', :claim, array[:id], p_error => :'error')" \
                || is_lost=yes
            continue
        fi

        # step 11: what is done is completed, by the claim that still has it.
        outcome=$(call --set claim="$claim" --set id="$id" \
            <<<"select outcome from rowq.complete(:'queue', :claim, array[:id])") || is_lost=yes
        [[ $outcome == completed ]] && echo "done $queue $id $attempt"
    done
    kill $heartbeat && wait $heartbeat 2>/dev/null

    # step 12: give back what you have not begun; no attempt is spent.
    if ((${#fields[@]} > 0)) && [[ -z $is_lost ]]; then
        call --set claim="$claim" <<<"select from rowq.release(:'queue', :claim)"
    fi
done
