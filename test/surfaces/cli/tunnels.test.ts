import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const LONG_AGO = '2020-01-01T00:00:00.000Z';
const ID = '0123456789abcdef';
const ERROR = { code: 'no_inbound', message: 'It has no service.', at: LONG_AGO };
const COMMON = { id: ID, local_aid: aid, remote_aid: aid, listen: '127.0.0.1:1', opened_at: LONG_AGO };
const OPEN = {
  ...COMMON,
  ...{ is_relayed: false, path: 'lan', remote_addr: '', rtt_ms: 1, last_activity_at: LONG_AGO, active_conns: 0 },
  ...{ bytes_up: 2048, bytes_down: 5, idle_timeout_sec: 360 },
};
const CLOSED = { ...COMMON, closed_at: LONG_AGO, reason: 'idle', bytes_up: 0, bytes_down: 0, last_error: ERROR };

test('shows when tunnels close, and why they closed', async (t) => {
  const daemon = await AnsweringDaemon.start(t, (line) =>
    line === 'GET /tunnel' ? [200, { tunnels: [OPEN], closed: [CLOSED] }] : [200, OPEN],
  );
  const env = { SVC_API: daemon.api };
  const { stdout } = await runSvc(['tunnel', 'status'], { env });
  assert.match(stdout, /2\.0 KiB\/5 bytes +\d+ days ago +after 6 min\n\nCLOSED +LISTENED[^]* no connections\n/);
  assert.match(stdout, /Failed connections:\n01234567…, \d+ days ago: It has no service\.\n$/);
  const at = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();
  const noPath = { since: at(-14), held_until: at(46), connections: 1 };
  const cut = await AnsweringDaemon.start(t, () => [200, { tunnels: [{ ...OPEN, no_path: noPath }], closed: [] }]);
  const shown = await runSvc(['tunnel', 'status'], { env: { SVC_API: cut.api } });
  assert.match(shown.stdout, / none +1\.0 ms /);
  assert.match(shown.stdout, /01234567…: no path since 1[45] s, 1 connection is held for 4[56] s more\n/);
  const one: unknown = JSON.parse((await runSvc(['tunnel', 'status', ID, '--json'], { env })).stdout);
  assert.deepEqual(one, { tunnels: [OPEN], closed: [] });
  const opened = await runSvc(['tunnel', 'open', aid], { env });
  assert.match(opened.stderr, /closes after 6 min without a connection\. Use --idle-timeout -1 to keep it open/);
});
