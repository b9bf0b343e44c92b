-- rowq's routines as a client calls them.

-- name: create
exec rowq.CreateQueue N'bench'

-- name: enqueue
exec rowq.Enqueue N'bench', :body

-- name: fill
exec rowq.EnqueueBatch N'bench', :messages

-- name: settle
exec rowq.CareForIndexes

-- name: enqueue_after
declare @after_id bigint = nullif(:predecessor, 0);
declare @predecessor_ids nvarchar(max) = N'[' + cast(@after_id as nvarchar(20)) + N']';
exec rowq.Enqueue N'bench', :body, @predecessor_ids = @predecessor_ids

-- name: fill_chains
exec rowq.EnqueueBatch N'bench', :messages

-- name: dequeue
exec rowq.DequeueFast N'bench', :batch, N'bench', 600

-- name: complete
exec rowq.Complete N'bench', :claim

-- name: complete_one
declare @message_ids nvarchar(max) = concat(N'[', :message, N']');
exec rowq.Complete N'bench', :claim, @message_ids

-- name: maintain
exec rowq.Maintain N'bench'
