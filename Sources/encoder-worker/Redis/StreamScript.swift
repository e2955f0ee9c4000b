// Operations in Redis itself, in Lua: each of these happens as a whole or not at all, and no other command in between.
//
// KEYS: the stream; `batches`, a hash of the names that are owed, each with its entry and how often it failed for unknown reasons;
// `dead`, a stream of batches that cannot be encoded; `store`, where the batches lie; `made`, which group this is, as one that is
// made after a loss has the name of the one that was lost. ARGV: the worker's name in the group, then a script's own, and last the
// group that the worker is in.

import SegmentEncoder
import WorkQueues

/// A step of the queue that is more than one command.
enum StreamScript: String, CaseIterable, Sendable {
  case join, add, next, takeOver, renew, begin, fail, handBack, acknowledge, deadLetter, waiting, held, leave

  static let group = "encoder-worker"

  /// The operation's name in errors.
  var operation: String {
    switch self {
    case .join: "join the group"
    case .add: "add batches"
    case .next: "take the next batch"
    case .takeOver: "take over what dead workers held"
    case .renew: "renew leases"
    case .begin: "note that work begins"
    case .fail: "note a failure"
    case .handBack: "hand a batch back"
    case .acknowledge: "acknowledge a batch"
    case .deadLetter: "write to the dead letters"
    case .waiting: "count what waits"
    case .held: "count what is held"
    case .leave: "leave"
    }
  }

  var text: String { Self.common + (self == .join ? "" : Self.onlyWhoHasJoined) + body }

  private static let common = """
    local stream, batches, dead, store, made = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
    local me, joined, group = ARGV[1], table.remove(ARGV), '\(group)'

    local function field(fields, name)
      for i = 1, #fields, 2 do if fields[i] == name then return fields[i + 1] end end
      return ''
    end
    local function owned(id)
      local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
      return pending and pending[2] == me
    end
    -- The last entry that was given to anybody.
    local function last()
      for _, known in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
        if field(known, 'name') == group then return field(known, 'last-delivered-id') end
      end
      return '0-0'
    end
    -- Whether an entry waits or is held: a stream may have been cut by hand.
    local function lives(id)
      if #redis.call('XRANGE', stream, id, id) == 0 then return false end
      return #redis.call('XPENDING', stream, group, id, id, 1) > 0
        or #redis.call('XRANGE', stream, '(' .. last(), id, 'COUNT', 1) > 0
    end
    -- A name's entry, if it lives, and its failures.
    local function known(name)
      local id, failures = string.match(redis.call('HGET', batches, name) or '', '^(%d+%-%d+) (%d+)$')
      return id and lives(id) and id, tonumber(failures or 0)
    end
    local function remember(name, id, failures) redis.call('HSET', batches, name, id .. ' ' .. failures) end
    -- An entry goes, and with it what is known of its name, unless that waits in another one.
    local function release(id, name)
      local other = known(name)
      if not other or other == id then redis.call('HDEL', batches, name) end
      redis.call('XACK', stream, group, id)
      redis.call('XDEL', stream, id)
    end
    -- What a worker needs to know of an entry; of a name that is too long so much that this can be seen.
    local function told(id, fields, attempt)
      local name = field(fields, 'batch')
      if #name == 0 or #name > \(RedisStream.nameBytes) then
        return {id, string.sub(name, 1, \(RedisStream.nameBytes + 1)), attempt, 0}
      end
      local other, failures = known(name)
      if not other or other == id then remember(name, id, failures) end
      return {id, name, attempt, failures, other and other ~= id}
    end

    """

  /// A worker of the lost group learns of the loss, even if others have made the group again.
  private static let onlyWhoHasJoined = """
    if redis.call('GET', made) ~= joined then
      return redis.error_reply('NOGROUP the group has been made anew')
    end

    """

  private var body: String {
    switch self {
    case .join:
      // ARGV: the store. Returns which group it is; of another store that one, in a list.
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
      """
    case .add:
      // Without a group nothing is written yet.
      """
      redis.call('XPENDING', stream, group)
      local new = 0
      for i = 2, #ARGV do
        local id, failures = known(ARGV[i])
        if not id then
          remember(ARGV[i], redis.call('XADD', stream, '*', 'batch', ARGV[i]), failures)
          new = new + 1
        end
      end
      return new
      """
    case .next:
      // A name that is already there in another entry is not given twice. How often work on it began goes on from what the
      // entry says.
      """
      for _ = 1, 1000 do
        local reply = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', 1, 'STREAMS', stream, '>')
        if not reply then return false end
        local id, fields = reply[1][2][1][1], reply[1][2][1][2]
        local before = tonumber(string.match(field(fields, 'attempt'), '^%d%d?%d?$') or 0)
        -- A producer that says more does not send it to quarantine unseen.
        before = math.min(before, \(Claim.attempts - 1))
        local entry = told(id, fields, before + 1)
        if not entry[5] then
          if before > 0 then redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', before + 1, 'JUSTID') end
          return entry
        end
        redis.call('XACK', stream, group, id)
        redis.call('XDEL', stream, id)
      end
      return 0
      """
    case .takeOver:
      // ARGV: milliseconds of a lease; how many at most; milliseconds after which a worker that holds nothing is forgotten; what
      // this worker holds. An entry of its own that is not among those was in a lost reply: work on it has not begun, so that this
      // does not count. XCLAIM drops what was deleted by hand.
      """
      local lease, most, forgotten = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
      local mine, taken = {}, {}
      for i = 5, #ARGV do mine[ARGV[i]] = true end
      local room = most + #ARGV - 4
      local function take(pending, attempt)
        local id = pending[1]
        if mine[id] or #taken >= most then return end
        -- Whoever wrote it, it can be counted on.
        attempt = math.min(attempt, 1000)
        redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', attempt, 'JUSTID')
        local entry = redis.call('XRANGE', stream, id, id)[1]
        if entry then taken[#taken + 1] = told(id, entry[2], attempt) end
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
        if name ~= me and field(worker, 'pending') == 0 and field(worker, 'idle') >= forgotten then
          redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
        end
      end
      return taken
      """
    case .renew:
      // ARGV: what this worker holds. Returns what it does not hold any more.
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
      """
    case .begin:
      // ARGV: entry, attempt.
      """
      if not owned(ARGV[2]) then return 0 end
      redis.call('XCLAIM', stream, group, me, 0, ARGV[2], 'RETRYCOUNT', ARGV[3], 'JUSTID')
      return 1
      """
    case .fail:
      // ARGV: entry, name, failures. Told twice it is still one.
      """
      if not owned(ARGV[2]) then return 0 end
      local other, failures = known(ARGV[3])
      remember(ARGV[3], other or ARGV[2], math.max(failures, tonumber(ARGV[4])))
      return 1
      """
    case .handBack:
      // ARGV: entry, name, failures, attempt.
      """
      if not owned(ARGV[2]) then return 0 end
      local other, failures = known(ARGV[3])
      if not other or other == ARGV[2] then
        local counts = tonumber(ARGV[5]) > 0 and {'attempt', ARGV[5]} or {}
        local id = redis.call('XADD', stream, '*', 'batch', ARGV[3], unpack(counts))
        remember(ARGV[3], id, math.max(failures, tonumber(ARGV[4])))
      end
      redis.call('XACK', stream, group, ARGV[2])
      redis.call('XDEL', stream, ARGV[2])
      return 1
      """
    case .acknowledge:
      // ARGV: entry, name.
      """
      if not owned(ARGV[2]) then return 0 end
      release(ARGV[2], ARGV[3])
      return 1
      """
    case .deadLetter:
      // ARGV: entry, name, failures, attempt, reason. A name that cannot be told here is taken as it stands in the entry.
      """
      if not owned(ARGV[2]) then return 0 end
      local entry = redis.call('XRANGE', stream, ARGV[2], ARGV[2])[1]
      local name = entry and field(entry[2], 'batch') or ARGV[3]
      local now = redis.call('TIME')
      redis.call('XADD', dead, '*', 'batch', string.sub(name, 1, \(RedisStream.nameBytes)), 'reason', ARGV[6],
        'timeMs', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)), 'entry', ARGV[2],
        'attempt', ARGV[5], 'failures', ARGV[4], 'worker', me)
      release(ARGV[2], name)
      return 1
      """
    case .waiting:
      // An entry that was acknowledged by hand no longer waits; an entry that was deleted by hand is not there.
      """
      local held = redis.call('XPENDING', stream, group)[1]
      if #redis.call('XRANGE', stream, '(' .. last(), '+', 'COUNT', 1) == 0 then return 0 end
      return math.max(1, redis.call('XLEN', stream) - held)
      """
    case .held:
      // By all workers, and by this worker.
      """
      local summary = redis.call('XPENDING', stream, group)
      for _, worker in ipairs(summary[4] or {}) do
        if worker[1] == me then return {summary[1], tonumber(worker[2])} end
      end
      return {summary[1], 0}
      """
    case .leave:
      """
      if #redis.call('XPENDING', stream, group, '-', '+', 1, me) > 0 then return 0 end
      return redis.call('XGROUP', 'DELCONSUMER', stream, group, me)
      """
    }
  }
}
