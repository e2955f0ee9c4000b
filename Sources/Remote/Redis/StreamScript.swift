// Scripts in Lua that Redis runs, each atomically.
//
// KEYS: the stream; `batches`, a hash from the name of each owed batch to its entry and its failures for unknown
// reasons; `dead`, a stream of batches that cannot be encoded; `store`, the store of the batches; `made`, the ID of the
// group, which differs after a loss of data; `published`, a stream of the events of batches. ARGV: the worker's name in the group, the script's own arguments, and the
// ID of the group that the worker joined.

import FrameBatches
import WorkQueues

/// A step of the queue.
struct StreamScript: Sendable {
  static let group = "encoder-worker"

  /// The operation's name in errors, unique.
  let operation: String
  let text: String

  private init(_ operation: String, requiresGroup: Bool = true, _ body: String) {
    self.operation = operation
    text = Self.common + (requiresGroup ? Self.groupCheck : "") + body
  }

  private static let common = """
    local stream, batches, dead, store, made, published = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
    local me, joined, group = ARGV[1], table.remove(ARGV), '\(group)'

    local function field(fields, name)
      for i = 1, #fields, 2 do if fields[i] == name then return fields[i + 1] end end
      return ''
    end
    local function owned(id)
      local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
      return pending and pending[2] == me
    end
    -- The last entry that was delivered.
    local function last()
      for _, known in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
        if field(known, 'name') == group then return field(known, 'last-delivered-id') end
      end
      return '0-0'
    end
    -- Whether an entry waits or is held: a stream may have been trimmed by hand.
    local function lives(id)
      if #redis.call('XRANGE', stream, id, id) == 0 then return false end
      return #redis.call('XPENDING', stream, group, id, id, 1) > 0
        or #redis.call('XRANGE', stream, '(' .. last(), id, 'COUNT', 1) > 0
    end
    -- A name's entry, if it waits or is held, and its failures.
    local function known(name)
      local id, failures = string.match(redis.call('HGET', batches, name) or '', '^(%d+%-%d+) (%d+)$')
      return id and lives(id) and id, tonumber(failures or 0)
    end
    local function remember(name, id, failures) redis.call('HSET', batches, name, id .. ' ' .. failures) end
    -- Removes an entry, and its name unless that waits in another entry.
    local function release(id, name)
      local other = known(name)
      if not other or other == id then redis.call('HDEL', batches, name) end
      redis.call('XACK', stream, group, id)
      redis.call('XDEL', stream, id)
    end
    -- The reply for an entry. A name that is too long is cut one byte behind the limit, and so is a trace.
    local function entryReply(id, fields, attempt)
      local name = field(fields, 'batch')
      if #name == 0 or #name > \(QueuedName.maximumBytes) then
        return {id, string.sub(name, 1, \(QueuedName.maximumBytes + 1)), attempt, 0}
      end
      local other, failures = known(name)
      if not other or other == id then remember(name, id, failures) end
      local trace = string.sub(field(fields, '\(TraceParent.key)'), 1, \(TraceParent.length + 1))
      return {id, name, attempt, failures, (other and other ~= id) or false, trace}
    end

    """

  /// A worker that joined before a loss of data gets an error, even if other workers have created the group again.
  private static let groupCheck = """
    if redis.call('GET', made) ~= joined then
      return redis.error_reply('NOGROUP the group has been made anew')
    end

    """

  /// Arguments: the store. Returns the ID of the group; if the stream belongs to another store, a list with that store.
  static let join = StreamScript(
    "join the group", requiresGroup: false,
    """
    local other = redis.call('GET', store)
    if other and other ~= ARGV[2] then return {other} end
    local reply = redis.pcall('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
    if reply.err and not string.find(reply.err, '^BUSYGROUP') then return reply end
    redis.call('SET', store, ARGV[2])
    if not reply.err or redis.call('EXISTS', made) == 0 then
      local now = redis.call('TIME')
      redis.call('SET', made, now[1] .. '.' .. now[2] .. ' ' .. me)
    end
    return redis.call('GET', made)
    """)

  /// Arguments: the trace of the names, or nothing; names. Returns the number of new ones. Fails before any write if there is no group.
  static let add = StreamScript(
    "add batches",
    """
    redis.call('XPENDING', stream, group)
    local new, trace = 0, ARGV[2] ~= '' and {'\(TraceParent.key)', ARGV[2]} or {}
    for i = 3, #ARGV do
      local id, failures = known(ARGV[i])
      if not id then
        remember(ARGV[i], redis.call('XADD', stream, '*', 'batch', ARGV[i], unpack(trace)), failures)
        new = new + 1
      end
    end
    return new
    """)

  /// Returns an entry; false if none waits; 0 if there may be more after many duplicates. Counts the attempts of the
  /// entry's field `attempt`.
  static let next = StreamScript(
    "take the next batch",
    """
    for _ = 1, 1000 do
      local reply = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', 1, 'STREAMS', stream, '>')
      if not reply then return false end
      local id, fields = reply[1][2][1][1], reply[1][2][1][2]
      local before = tonumber(string.match(field(fields, 'attempt'), '^%d%d?%d?$') or 0)
      -- A larger number from a producer must not quarantine the batch unseen.
      before = math.min(before, \(Claim.attempts - 1))
      local entry = entryReply(id, fields, before + 1)
      if not entry[5] then
        if before > 0 then redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', before + 1, 'JUSTID') end
        return entry
      end
      redis.call('XACK', stream, group, id)
      redis.call('XDEL', stream, id)
    end
    return 0
    """)

  /// Arguments: the lease in milliseconds; the maximum of entries; the milliseconds after which an idle consumer
  /// without entries is removed; the entries that this worker holds. Other entries of this worker were in a lost reply:
  /// work on them has not begun, so it does not count as an attempt. XCLAIM drops entries that were deleted by hand.
  static let takeOver = StreamScript(
    "take over claims of dead workers",
    """
    local lease, maximum, idleLimit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
    local mine, taken = {}, {}
    for i = 5, #ARGV do mine[ARGV[i]] = true end
    local room = maximum + #ARGV - 4
    local function take(pending, attempt)
      local id = pending[1]
      if mine[id] or #taken >= maximum then return end
      -- A producer may have written a larger number.
      attempt = math.min(attempt, 1000)
      redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', attempt, 'JUSTID')
      local entry = redis.call('XRANGE', stream, id, id)[1]
      if entry then taken[#taken + 1] = entryReply(id, entry[2], attempt) end
      mine[id] = true
    end
    for _, pending in ipairs(redis.call('XPENDING', stream, group, '-', '+', room, me)) do
      take(pending, math.max(0, pending[4] - 1))
    end
    for _, pending in ipairs(redis.call('XPENDING', stream, group, 'IDLE', lease, '-', '+', room)) do
      if pending[2] ~= me then take(pending, pending[4]) end
    end
    for _, worker in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
      local name = field(worker, 'name')
      if name ~= me and field(worker, 'pending') == 0 and field(worker, 'idle') >= idleLimit then
        redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
      end
    end
    return taken
    """)

  /// Arguments: the entries that this worker holds. Returns those that it does not hold any more.
  static let renew = StreamScript(
    "renew leases",
    """
    local lost = {}
    for i = 2, #ARGV do
      if owned(ARGV[i]) then
        redis.call('XCLAIM', stream, group, me, 0, ARGV[i], 'JUSTID')
      else
        lost[#lost + 1] = ARGV[i]
      end
    end
    return lost
    """)

  /// Arguments: entry, attempt.
  static let begin = StreamScript(
    "count an attempt",
    """
    if not owned(ARGV[2]) then return 0 end
    redis.call('XCLAIM', stream, group, me, 0, ARGV[2], 'RETRYCOUNT', ARGV[3], 'JUSTID')
    return 1
    """)

  /// Arguments: entry, name, failures. Idempotent.
  static let fail = StreamScript(
    "count a failure",
    """
    if not owned(ARGV[2]) then return 0 end
    local other, failures = known(ARGV[3])
    remember(ARGV[3], other or ARGV[2], math.max(failures, tonumber(ARGV[4])))
    return 1
    """)

  /// Arguments: entry, name, failures, attempt, and the trace or nothing.
  static let handBack = StreamScript(
    "hand a batch back",
    """
    if not owned(ARGV[2]) then return 0 end
    local other, failures = known(ARGV[3])
    if not other or other == ARGV[2] then
      local more = tonumber(ARGV[5]) > 0 and {'attempt', ARGV[5]} or {}
      if ARGV[6] ~= '' then for _, word in ipairs({'\(TraceParent.key)', ARGV[6]}) do table.insert(more, word) end end
      local id = redis.call('XADD', stream, '*', 'batch', ARGV[3], unpack(more))
      remember(ARGV[3], id, math.max(failures, tonumber(ARGV[4])))
    end
    redis.call('XACK', stream, group, ARGV[2])
    redis.call('XDEL', stream, ARGV[2])
    return 1
    """)

  /// Arguments: entry, key, event. A stream of events that nobody reads stays bounded.
  static let announce = StreamScript(
    "announce a batch",
    """
    if not owned(ARGV[2]) then return 0 end
    redis.call('XADD', published, 'MAXLEN', '~', \(RedisStream.maximumEvents), '*', 'key', ARGV[3], 'event', ARGV[4])
    return 1
    """)

  /// Arguments: key, event.
  static let announceEvent = StreamScript(
    "announce an event",
    """
    redis.call('XADD', published, 'MAXLEN', '~', \(RedisStream.maximumEvents), '*', 'key', ARGV[2], 'event', ARGV[3])
    return 1
    """)

  /// Arguments: entry, name.
  static let acknowledge = StreamScript(
    "acknowledge a batch",
    """
    if not owned(ARGV[2]) then return 0 end
    release(ARGV[2], ARGV[3])
    return 1
    """)

  /// Arguments: entry, name, failures, attempt, reason. The name comes from the entry: it may be no UTF-8.
  static let deadLetter = StreamScript(
    "write to the dead letters",
    """
    if not owned(ARGV[2]) then return 0 end
    local entry = redis.call('XRANGE', stream, ARGV[2], ARGV[2])[1]
    local name = entry and field(entry[2], 'batch') or ARGV[3]
    local now = redis.call('TIME')
    redis.call('XADD', dead, '*', 'batch', string.sub(name, 1, \(QueuedName.maximumBytes)), 'reason', ARGV[6],
      'timeMs', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)), 'entry', ARGV[2],
      'attempt', ARGV[5], 'failures', ARGV[4], 'worker', me)
    release(ARGV[2], name)
    return 1
    """)

  /// Returns the number of waiting entries. Entries that were acknowledged or deleted by hand do not count.
  static let waiting = StreamScript(
    "count waiting batches",
    """
    local held = redis.call('XPENDING', stream, group)[1]
    if #redis.call('XRANGE', stream, '(' .. last(), '+', 'COUNT', 1) == 0 then return 0 end
    return math.max(1, redis.call('XLEN', stream) - held)
    """)

  /// Returns the number of entries that all workers hold, and that this worker holds.
  static let held = StreamScript(
    "count held batches",
    """
    local summary = redis.call('XPENDING', stream, group)
    for _, worker in ipairs(summary[4] or {}) do
      if worker[1] == me then return {summary[1], tonumber(worker[2])} end
    end
    return {summary[1], 0}
    """)

  /// Returns the store of the stream, the time in milliseconds, the number of waiting entries and the ID of the first, and those of held
  /// entries. Reads only, and does not need the group.
  static let status = StreamScript(
    "tell its state", requiresGroup: false,
    """
    local now = redis.call('TIME')
    local nowMs = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
    local other = redis.call('GET', store) or ''
    if redis.call('EXISTS', stream) == 0 then return {other, nowMs, 0, '', 0, ''} end
    local from, held, first = '-', 0, ''
    for _, known in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      if field(known, 'name') == group then
        from = '(' .. field(known, 'last-delivered-id')
        local summary = redis.call('XPENDING', stream, group)
        held, first = summary[1], summary[2] or ''
      end
    end
    local next = redis.call('XRANGE', stream, from, '+', 'COUNT', 1)[1]
    if not next then return {other, nowMs, 0, '', held, first} end
    return {other, nowMs, math.max(1, redis.call('XLEN', stream) - held), next[1], held, first}
    """)

  /// Removes this worker from the group, unless it holds entries.
  static let leave = StreamScript(
    "leave the group",
    """
    if #redis.call('XPENDING', stream, group, '-', '+', 1, me) > 0 then return 0 end
    return redis.call('XGROUP', 'DELCONSUMER', stream, group, me)
    """)
}
