"""Names of spans and attributes, by the messaging conventions of OpenTelemetry.

The conventions are in development and may change: this is the one place that follows them.
"""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the conventions that these names are of."""

SYSTEM = "messaging.system"
DESTINATION = "messaging.destination.name"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
MESSAGE_ID = "messaging.message.id"
MESSAGE_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"

ROWQ = "rowq"
"""The value of SYSTEM."""
SEND, RECEIVE, PROCESS = "send", "receive", "process"
"""The values of OPERATION and of OPERATION_TYPE, and the first words of the spans' names."""

# The conventions have no names for these.
ATTEMPT = "rowq.attempt"
CLAIM_ID = "rowq.claim_id"
OUTCOME = "rowq.outcome"
