# What each function may do, is asked for, and needs beyond what all have. As in template.yaml, action by action.

module "emit" { # takes custom events
  source      = "./function"
  name        = "emit"
  common      = local.common
  environment = merge(local.environment, local.bell)

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots and idempotency keys
        "dynamodb:GetItem",    # what a slot or key holds after a call whose outcome is unknown
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",      # heads of streams, event names
        "dynamodb:BatchGetItem", # several event names
        "dynamodb:Query",        # the response that an idempotency key has; what orders wait for
        "dynamodb:PutItem",      # heads, event names, entries, idempotency keys
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage", # for orders that wait for an event
      ]
    },
  ]

  routes = [
    "POST /jobscheduler/master/api/event",
    "POST /api/v1/streams/{stream}/events",
    "POST /api/v1/streams/{stream}/events:batch",
    # streams whose names hold slashes, acknowledging too: the gateway unescapes them, so that its routes cannot tell where a name ends
    "POST /api/v1/streams/{proxy+}",
  ]
}

module "acknowledge" { # moves the offsets of consumers of streams
  source      = "./function"
  name        = "acknowledge"
  common      = local.common
  environment = local.environment

  policy = [
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem", # heads of streams, event names, offsets
        "dynamodb:Query",   # places of events
        "dynamodb:PutItem", # offsets
      ]
    },
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:GetItem", # readiness
      ]
    },
  ]

  routes = [
    "POST /api/v1/streams/{stream}/events/{id}",
    "POST /api/v1/streams/{stream}/offsets",
  ]
}

module "read_after" { # serves events
  source      = "./function"
  name        = "read-after"
  common      = local.common
  environment = local.environment
  memory      = 256 # requests that are held wait most of their time

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:GetItem",      # the sequencer, single slots, snapshot generations
        "dynamodb:BatchGetItem", # slots that hold causes
        "dynamodb:Query",        # slots
        "dynamodb:PutItem",      # voids in place of slots whose writer died
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",      # heads of streams, offsets
        "dynamodb:BatchGetItem", # event names
        "dynamodb:Query",        # entries of streams, lists
      ]
    },
  ]

  routes = [
    "GET /jobscheduler/master/api/event",
    "GET /jobscheduler/master/api/journal/{proxy+}",
    "GET /api/v1/streams",
    "GET /api/v1/streams/{proxy+}",
    "GET /api/v1/consumers",
    "GET /api/v1/events/{id}",
  ]
}

module "snapshot" { # serves objects and their events
  source      = "./function"
  name        = "snapshot"
  common      = local.common
  environment = local.environment

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:GetItem",      # the sequencer, single slots, snapshot generations
        "dynamodb:BatchGetItem", # slots that hold causes
        "dynamodb:Query",        # slots, lists of snapshot generations
        "dynamodb:PutItem",      # voids in place of slots whose writer died
      ]
    },
  ]

  routes = [
    "ANY /jobscheduler/master/api/order",
    "ANY /jobscheduler/master/api/order/{proxy+}",
    "ANY /jobscheduler/master/api/job",
    "ANY /jobscheduler/master/api/job/{proxy+}",
    "ANY /jobscheduler/master/api/jobChain",
    "ANY /jobscheduler/master/api/jobChain/{proxy+}",
    "ANY /jobscheduler/master/api/task",
    "ANY /jobscheduler/master/api/task/{proxy+}",
    "ANY /jobscheduler/master/api/fileBased",
    "ANY /jobscheduler/master/api/fileBased/{proxy+}",
    "ANY /jobscheduler/master/api/object",
    "ANY /jobscheduler/master/api/object/{proxy+}",
  ]
}

module "sweep" { # stores snapshot generations, moves the floor, removes old slots; takes back tasks whose worker died
  source      = "./function"
  name        = "sweep"
  common      = local.common
  environment = merge(local.environment, local.bell)
  timeout     = 60
  repeated    = 0 # the next minute does what this one has not

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:GetItem",        # the sequencer, single slots, snapshot generations
        "dynamodb:Query",          # slots, lists of snapshot generations
        "dynamodb:PutItem",        # voids, snapshot generations
        "dynamodb:UpdateItem",     # the floor, tickets
        "dynamodb:DeleteItem",     # old generations
        "dynamodb:BatchWriteItem", # slots evicted a day ago
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # tasks, leases, limits
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # leases, what is held, due or ready
        "dynamodb:PutItem",            # tasks, entries of indexes
        "dynamodb:DeleteItem",         # leases, entries of indexes
        "dynamodb:ConditionCheckItem", # rules, limits
        "dynamodb:UpdateItem",         # turns of fair queues
        "dynamodb:BatchWriteItem",     # logs of tasks that are too old, acts on many that are done
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # notifications of what is ready
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]
}

module "enqueue_task" { # makes tasks
  source      = "./function"
  name        = "enqueue-task"
  common      = local.common
  environment = merge(local.environment, local.bell)

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots and idempotency keys
        "dynamodb:GetItem",    # what a slot or key holds after a call whose outcome is unknown
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # unique keys
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # rules, queues
        "dynamodb:PutItem",            # tasks, entries of indexes
        "dynamodb:DeleteItem",         # entries of indexes
        "dynamodb:ConditionCheckItem", # rules
        "dynamodb:UpdateItem",         # turns of fair queues
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # a notification for each task
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]

  routes = [
    "POST /api/v1/tasks",
    "POST /api/v1/tasks:batch",
    "POST /tasks",
    "POST /tasks:batch",
    "POST /api/v1/canvases/{proxy+}",
    "POST /api/v1/jobs",
    "POST /api/v1/jobs:batch",
  ]
}

module "tasks" { # shows tasks, cancels and retries them, sets rules
  source      = "./function"
  name        = "tasks"
  common      = local.common
  environment = merge(local.environment, local.bell)

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots and idempotency keys
        "dynamodb:GetItem",    # what a slot or key holds after a call whose outcome is unknown; snapshot generations
        "dynamodb:Query",      # slots, lists of snapshot generations
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # tasks
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # lists, logs, rules
        "dynamodb:PutItem",            # tasks, rules, entries of indexes
        "dynamodb:DeleteItem",         # rules, entries of indexes
        "dynamodb:ConditionCheckItem", # rules
        "dynamodb:UpdateItem",         # turns of fair queues
        "dynamodb:BatchWriteItem",     # logs of tasks that are removed
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # notifications of tasks that a rule held or that are done again
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]

  routes = [ # methods by name where POST is enqueue-task's: sam local takes the widest of several routes
    "GET /api/v1/tasks",
    "ANY /api/v1/tasks/{proxy+}",
    "GET /tasks",
    "ANY /tasks/{proxy+}",
    "GET /api/v1/canvases/{proxy+}",
    "PUT /api/v1/canvases/{proxy+}",
    "DELETE /api/v1/canvases/{proxy+}",
    "ANY /api/v1/orders/{proxy+}",
    "ANY /api/v1/chains/{proxy+}",
    "POST /api/v1/orders:act",
    "POST /api/v1/jobs:act",
    "ANY /api/v1/acts/{proxy+}",
    "GET /api/v1/jobs",
    "ANY /api/v1/jobs/{proxy+}",
    "GET /api/v1/queues",
    "GET /api/v1/queues/{proxy+}",
    "POST /api/v1/queues/{proxy+}",
    "GET /api/v1/statistics",
    "GET /api/v1/statistics/topics",
  ]
}

module "define" { # shows and replaces the definitions, acts on schedules
  source      = "./function"
  name        = "define"
  common      = local.common
  environment = merge(local.environment, local.bell)

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots
        "dynamodb:GetItem",    # what a slot holds after a call whose outcome is unknown; snapshot generations
        "dynamodb:Query",      # slots, lists of snapshot generations
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # tasks, unique keys
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # rules, what depends on a task
        "dynamodb:PutItem",            # tasks, entries of indexes
        "dynamodb:DeleteItem",         # entries of indexes
        "dynamodb:ConditionCheckItem", # rules
        "dynamodb:UpdateItem",         # turns of fair queues
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
        "dynamodb:Query",        # schedules
        "dynamodb:PutItem",
        "dynamodb:DeleteItem", # parts, where it has become shorter
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # notifications of tasks that a schedule makes
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]

  routes = [
    "ANY /api/v1/definitions",
    "PUT /api/v1/queues/{proxy+}",
    "DELETE /api/v1/queues/{proxy+}",
    "ANY /api/v1/schedules",
    # all of the path: names of collections' schedules hold slashes
    "ANY /api/v1/schedules/{proxy+}",
    "GET /api/v1/cron/next",
  ]
}

module "lease" { # registers instances, gives them tasks, takes their progress and results
  source      = "./function"
  name        = "lease"
  common      = local.common
  environment = merge(local.environment, local.bell)
  memory      = 256 # requests that are held wait most of their time

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots
        "dynamodb:GetItem",    # what a slot holds after a call whose outcome is unknown
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # instances, tasks, leases
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # instances, indexes, rules
        "dynamodb:PutItem",            # instances, tasks, leases, logs
        "dynamodb:DeleteItem",         # instances, entries of indexes
        "dynamodb:ConditionCheckItem", # rules, limits
        "dynamodb:UpdateItem",         # numbers of instances, turns of fair queues
        "dynamodb:BatchWriteItem",     # logs of tasks that are gone
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # for retries, and for tasks that a limit held
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]

  routes = [
    "ANY /api/v1/instances",
    "ANY /api/v1/instances/{proxy+}",
    "POST /api/v1/leases/{token}/{act}",
  ]
}

module "dashboard" { # serves the pages for people, and whatever no other function does; its rights are those of all functions of the API together, since its acts are requests to them in the same process
  source      = "./function"
  name        = "dashboard"
  common      = local.common
  environment = merge(local.environment, local.bell)

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem",   # tickets
        "dynamodb:PutItem",      # slots and idempotency keys; voids in place of slots whose writer died
        "dynamodb:GetItem",      # the sequencer, single slots, snapshot generations
        "dynamodb:BatchGetItem", # slots that hold causes
        "dynamodb:Query",        # slots, lists of snapshot generations
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # sessions, tasks, instances, heads of streams
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # lists, logs, rules, indexes
        "dynamodb:PutItem",            # sessions, failed sign-ins, tasks, rules, entries of indexes, offsets
        "dynamodb:DeleteItem",         # sessions, rules, entries of indexes
        "dynamodb:ConditionCheckItem", # rules
        "dynamodb:UpdateItem",         # turns of fair queues
        "dynamodb:BatchWriteItem",     # logs of tasks that are removed
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
        "dynamodb:Query",        # schedules
        "dynamodb:PutItem",
        "dynamodb:DeleteItem", # parts, where it has become shorter
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # notifications of tasks that acts add or let go, and for orders
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]

  routes = ["$default"] # the pages, the description, health, and unknown paths and methods, to which it responds as one process does
}

module "worker" { # starts tasks when it is notified, and goes on while there are some
  source = "./function"
  name   = "worker"
  common = local.common
  environment = merge(local.environment, local.bell, {
    MILLRACE_URL = aws_apigatewayv2_api.api.api_endpoint # where targets report to: not at domain_name, whose record may come later
  })
  timeout = 900     # the most that Lambda allows: tasks run inside
  loop    = "Allow" # it notifies the queue that it is invoked by; Lambda would end such a chain after 16 invocations

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots
        "dynamodb:GetItem",    # what a slot holds after a call whose outcome is unknown; the sequencer
        "dynamodb:Query",      # events that orders wait for
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # tasks, leases, limits
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # indexes, rules, logs
        "dynamodb:PutItem",            # tasks, leases, logs
        "dynamodb:DeleteItem",         # entries of indexes
        "dynamodb:ConditionCheckItem", # rules, limits
        "dynamodb:UpdateItem",         # turns of fair queues
        "dynamodb:BatchWriteItem",     # logs of tasks that are gone, acts on many that are done
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
        "dynamodb:PutItem",      # the signing secret, once
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # for retries, for tasks that a limit held, and for more workers
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]
}

module "cron" { # makes the tasks of schedules, and notifies of tasks that fall due in the coming minutes
  source      = "./function"
  name        = "cron"
  common      = local.common
  environment = merge(local.environment, local.bell)
  timeout     = 55 # it is invoked each minute
  repeated    = 0  # the next minute does what this one has not

  policy = [
    {
      resources = [aws_dynamodb_table.table["journal"].arn]
      actions = [
        "dynamodb:UpdateItem", # tickets
        "dynamodb:PutItem",    # slots
        "dynamodb:GetItem",    # what a slot holds after a call whose outcome is unknown
      ]
    },
    {
      resources = [aws_dynamodb_table.table["work"].arn]
      actions = [
        "dynamodb:GetItem",            # tasks
        "dynamodb:BatchGetItem",       # several of them
        "dynamodb:Query",              # what is due
        "dynamodb:PutItem",            # tasks, entries of indexes
        "dynamodb:DeleteItem",         # entries of indexes
        "dynamodb:ConditionCheckItem", # rules
        "dynamodb:UpdateItem",         # turns of fair queues
      ]
    },
    {
      resources = [aws_dynamodb_table.table["definitions"].arn]
      actions = [
        "dynamodb:GetItem",      # what is declared
        "dynamodb:BatchGetItem", # the same, where it is long
        "dynamodb:Query",        # schedules
        "dynamodb:PutItem",      # how far the ticks of schedules are made
        "dynamodb:DeleteItem",   # the same, of those that were removed
      ]
    },
    {
      resources = [aws_sqs_queue.notices.arn]
      actions = [
        "sqs:SendMessage",        # notifications, delayed until their time
        "sqs:GetQueueAttributes", # readiness
      ]
    },
  ]
}
