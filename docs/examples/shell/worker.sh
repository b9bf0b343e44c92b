#!/usr/bin/env bash
# A rowq worker with psql and jq, see docs/examples/README.md: worker.sh QUEUE_NAME
set -uo pipefail
queue=${1:?usage: worker.sh QUEUE_NAME}

# step 1: set the worker's name, the batch size and the length of the lease.
worker="${HOSTNAME:-shell} $$"
batch_size=10
lease_seconds=${LEASE_SECONDS:-30}

# Handle a message: handle BODY ATTEMPT. A status other than 0 means a retry.
handle() {
    local order seconds fail
    read -r order seconds fail < <(jq -r '"\(.order) \(.seconds // 0) \(.fail)"' <<<"$1") || return
    sleep "$seconds"
    if [[ $fail == 1 && $2 == 1 ]]; then
        echo "order $order fails at its first attempt" >&2
        return 1
    fi
}

# step 2: a signal sets a flag that ends the loop; bash handles it between two commands.
stopping=
trap 'stopping=yes' TERM INT

# Run the statement on standard input. Status 2: no connection, 3: rowq refused.
call() {
    psql "${DATABASE_URL:?}" --no-psqlrc --quiet --no-align --tuples-only \
        --set ON_ERROR_STOP=1 --set queue="$queue" "$@"
}

pause() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# step 3: each call opens a connection; if that fails, retry after a growing pause.
retry_ms=100
wait_for_database() {
    pause $retry_ms
    retry_ms=$((retry_ms < 2500 ? 2 * retry_ms : 5000))
}

# step 4: call maintain once a second, in its own process.
maintain() {
    while sleep 1 && kill -0 $$; do
        call <<<"select rowq.maintain(:'queue')"
    done
}
maintain >/dev/null 2>&1 &
maintenance=$!
trap 'kill $maintenance' EXIT

# Step 7 runs this during the handler. It ends with the worker, also if that is killed: otherwise
# it would extend the lease forever.
extend_lease() {
    while sleep "$(jq -n "$lease_seconds / 3")" && kill -0 $$; do
        call --set claim="$1" --set lease="$lease_seconds" \
            <<<"select rowq.extend_lease(:'queue', :claim, :lease)" || break
    done
    kill -USR1 $$
}
trap 'is_lost=yes' USR1

# Run the statement on standard input, and read its rows. NUL separates fields and rows.
read_rows() {
    mapfile -t -d '' rows < <(
        call --field-separator-zero --record-separator-zero --set size=$batch_size \
            --set worker="$worker" --set lease="$lease_seconds" "$@"
    )
    wait $!; local status=$?
    if ((status > 128)); then wait $!; else return $status; fi # A trap ends the first wait.
}

# Complete the handled messages, and lease the next ones unless there was a signal or an error.
complete() {
    local ids place id
    printf -v ids ',%s' "${!handled[@]}"
    local finished=(--set claim="$claim" --set ids="{${ids:1}}")
    [[ -z $stopping ]] && read_rows "${finished[@]}" <<<"
        select outcome, claim_id, message_id, attempt, body
        from rowq.complete_and_dequeue(:'queue', :claim, :'ids', null, :size, :'worker', :lease)" \
        || read_rows "${finished[@]}" <<<"
            select outcome, null, message_id, null, null
            from rowq.complete(:'queue', :claim, :'ids')" || return
    for ((place = 0; place < ${#rows[@]}; place += 5)); do
        case ${rows[place]} in
            stale) unset "handled[${rows[place + 2]}]" ;;
            leased) next+=("${rows[@]:place:5}") ;;
        esac
    done
    for id in "${!handled[@]}"; do echo "done $queue $id ${handled[$id]}"; done
}

idle_ms=50
next=() # five columns of each leased message
while [[ -z $stopping ]] || ((${#next[@]} > 0)); do
    # step 5: lease a batch in its own transaction.
    if ((${#next[@]} == 0)); then
        read_rows <<<"
            select null, claim_id, message_id, attempt, body
            from rowq.dequeue_fast(:'queue', :size, :'worker', :lease)"
        case $? in
            2) wait_for_database && continue ;;
            3) exit 1 ;; # For example an unknown queue: waiting does not help.
        esac
        retry_ms=100
        next=("${rows[@]}")
    fi

    # step 6: poll an empty queue with growing pauses.
    if ((${#next[@]} == 0)); then
        pause $idle_ms
        idle_ms=$((idle_ms < 500 ? 2 * idle_ms : 1000))
        continue
    fi
    idle_ms=50
    claim=${next[1]}

    # step 7: extend the lease while the messages of the claim are handled.
    is_lost=
    extend_lease "$claim" >/dev/null 2>&1 &
    heartbeat=$!

    declare -A handled=() # the attempt of each handled message
    left=("${next[@]}") next=()
    while ((${#left[@]} > 0)); do
        # step 8: start no message after a signal, or after the claim is lost.
        [[ -n $is_lost || -n $stopping ]] && break

        # step 9: handle the message idempotently: a killed worker may have done it before.
        id=${left[2]} attempt=${left[3]} body=${left[4]}
        left=("${left[@]:5}")
        if error=$(handle "$body" "$attempt" 2>&1 >/dev/null); then
            handled[$id]=$attempt
            continue
        fi

        # step 10: retry a failed message after a growing delay.
        call --set claim="$claim" --set id="$id" --set error="$error" <<<"
            select from rowq.retry_later(:'queue', :claim, array[:id], p_error => :'error')" \
            || is_lost=yes
    done

    # step 11: complete messages with their claim id, and lease the next ones in the same call.
    if ((${#handled[@]} > 0)) && [[ -z $is_lost ]]; then complete; fi
    kill $heartbeat && wait $heartbeat 2>/dev/null

    # step 12: release messages that are not started; no attempt is spent.
    if ((${#left[@]} > 0)) && [[ -z $is_lost ]]; then
        call --set claim="$claim" <<<"select from rowq.release(:'queue', :claim)"
    fi
done
