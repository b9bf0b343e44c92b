-- rowq's routines as a client calls them.

-- name: create
exec rowq.CreateQueue N'bench', @lease_seconds = 3600

-- name: fill
exec rowq.EnqueueBatch N'bench', @value

-- name: settle
exec rowq.CareForIndexes

-- name: dequeue
exec rowq.DequeueFast N'bench', @value, N'bench'

-- name: complete
exec rowq.Complete N'bench', @value
