-- Schema 1. Bodies are JSON of the row; the columns beside a body are what is compared, ordered or given by the store.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch TEXT NOT NULL CHECK (length(epoch) = 32),
  high_water INTEGER NOT NULL
) STRICT;

CREATE TABLE tenant (
  tenant TEXT PRIMARY KEY,
  feed INTEGER NOT NULL DEFAULT 0,
  record INTEGER NOT NULL DEFAULT 0,
  sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed <= record),
  head TEXT NOT NULL DEFAULT '0000000000000000000000000000000000000000000000000000000000000000' CHECK (length(head) = 64),
  onces INTEGER NOT NULL DEFAULT 0 CHECK (onces >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE scope (
  tenant TEXT NOT NULL,
  scope TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (tenant, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE delegation (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  run TEXT NOT NULL,
  parent TEXT,
  agent TEXT NOT NULL,
  client TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  live_until INTEGER NOT NULL,
  done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
  version INTEGER NOT NULL,
  ledger_version INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (tenant, id)
) STRICT;
CREATE INDEX delegation_newest ON delegation (tenant, n);
CREATE INDEX delegation_by_run ON delegation (tenant, run, n);
CREATE INDEX delegation_by_agent ON delegation (tenant, agent, n);
CREATE INDEX delegation_by_client ON delegation (tenant, client, n);
CREATE INDEX delegation_live ON delegation (tenant, live_until, n);
CREATE INDEX delegation_ledger ON delegation (tenant, run, ledger_version) WHERE parent IS NOT NULL;
CREATE INDEX delegation_due ON delegation (live_until) WHERE parent IS NULL AND done = 0;

CREATE TABLE approval (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  run TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (
    state IN ('pending', 'approved', 'denied', 'timed_out', 'withdrawn', 'superseded', 'spent', 'lapsed')
  ),
  deadline INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  due INTEGER,
  version INTEGER NOT NULL CHECK (version > 0),
  ledger_version INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (tenant, id)
) STRICT;
CREATE INDEX approval_newest ON approval (tenant, n);
CREATE INDEX approval_pending ON approval (tenant, deadline, n) WHERE state = 'pending';
CREATE INDEX approval_by_digest ON approval (tenant, run, digest, n);
CREATE INDEX approval_ledger ON approval (tenant, run, ledger_version);
CREATE INDEX approval_due ON approval (due) WHERE due IS NOT NULL;

CREATE TABLE call (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  run TEXT NOT NULL,
  client TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'refused', 'done', 'failed', 'unknown')),
  at INTEGER NOT NULL,
  due INTEGER,
  version INTEGER NOT NULL CHECK (version > 0),
  ledger_version INTEGER NOT NULL,
  client_version INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (tenant, id)
) STRICT;
CREATE INDEX call_by_run ON call (tenant, run, n);
CREATE INDEX call_by_client ON call (tenant, client, at, n);
CREATE INDEX call_waiting ON call (tenant, digest, n) WHERE state = 'waiting';
CREATE INDEX call_ledger ON call (tenant, run, ledger_version);
CREATE INDEX call_client_ledger ON call (tenant, client, client_version);
CREATE INDEX call_due ON call (due) WHERE due IS NOT NULL;

CREATE TABLE policy (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  digest TEXT NOT NULL,
  since INTEGER NOT NULL,
  ledger_version INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (tenant, ledger_version)
) STRICT;
CREATE INDEX policy_newest ON policy (tenant, n);

-- One row per mark: what is revoked. `feed` holds each step on the way, so that a follower sees contiguous numbers.
CREATE TABLE revocation (
  tenant TEXT NOT NULL,
  mark TEXT NOT NULL,
  until INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tenant, mark)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX revocation_by_seq ON revocation (tenant, seq);

CREATE TABLE feed (
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  mark TEXT NOT NULL,
  until INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  caller TEXT NOT NULL,
  delegation TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  row TEXT NOT NULL,
  until INTEGER NOT NULL,
  UNIQUE (tenant, caller, delegation, key)
) STRICT;
CREATE INDEX idempotency_until ON idempotency (until);

CREATE TABLE once (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  until INTEGER NOT NULL,
  UNIQUE (tenant, key)
) STRICT;
CREATE INDEX once_until ON once (until);

CREATE TABLE guard (
  tenant TEXT NOT NULL,
  guard TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, guard)
) STRICT, WITHOUT ROWID;

CREATE TABLE record (
  n INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq > 0),
  at INTEGER NOT NULL,
  run TEXT,
  delegation TEXT,
  trace TEXT,
  body BLOB NOT NULL,
  link TEXT CHECK (link IS NULL OR length(link) = 64),
  UNIQUE (tenant, seq)
) STRICT;
CREATE INDEX record_at ON record (tenant, at, seq);
CREATE INDEX record_by_run ON record (tenant, run, seq) WHERE run IS NOT NULL;
CREATE INDEX record_by_delegation ON record (tenant, delegation, seq) WHERE delegation IS NOT NULL;
CREATE INDEX record_by_trace ON record (tenant, trace, seq) WHERE trace IS NOT NULL;

CREATE TABLE checkpoint (
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  head TEXT NOT NULL,
  at INTEGER NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (tenant, seq),
  FOREIGN KEY (tenant, seq) REFERENCES record (tenant, seq)
) STRICT, WITHOUT ROWID;

-- The file itself holds what no code may do, so that a slip in the code is an error and not a loss.
CREATE TRIGGER record_is_fixed BEFORE UPDATE OF n, tenant, seq, at, run, delegation, trace, body ON record
BEGIN SELECT RAISE(ABORT, 'audit records are append-only'); END;
CREATE TRIGGER record_link_once BEFORE UPDATE OF link ON record WHEN OLD.link IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the link of an audit record is set once'); END;
CREATE TRIGGER record_stays BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'audit records are append-only'); END;
CREATE TRIGGER checkpoint_is_fixed BEFORE UPDATE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoint_stays BEFORE DELETE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER feed_is_fixed BEFORE UPDATE ON feed
BEGIN SELECT RAISE(ABORT, 'the feed is append-only'); END;
CREATE TRIGGER revocation_grows BEFORE UPDATE ON revocation WHEN NEW.until <= OLD.until OR NEW.seq <= OLD.seq
BEGIN SELECT RAISE(ABORT, 'a revocation is never taken back'); END;
CREATE TRIGGER revocation_stays BEFORE DELETE ON revocation
BEGIN SELECT RAISE(ABORT, 'a revocation is never taken back'); END;
CREATE TRIGGER delegation_is_fixed
BEFORE UPDATE OF n, tenant, id, run, parent, agent, client, created_at, live_until, version, ledger_version, body
ON delegation
BEGIN SELECT RAISE(ABORT, 'a delegation is never updated'); END;
CREATE TRIGGER approval_moves BEFORE UPDATE ON approval
WHEN NEW.version <> OLD.version + 1 OR OLD.state NOT IN ('pending', 'approved')
BEGIN SELECT RAISE(ABORT, 'a settled approval does not move, and a move is one version'); END;
CREATE TRIGGER call_moves BEFORE UPDATE ON call
WHEN NEW.version <> OLD.version + 1 OR OLD.state NOT IN ('waiting', 'running')
BEGIN SELECT RAISE(ABORT, 'a settled call does not move, and a move is one version'); END;
