/**
 * Checks svcd with both official A2A SDKs, JavaScript and Python, each as client and as server, over JSON-RPC,
 * HTTP+JSON and gRPC, versions 1.0 and 0.3. Each verdict of a client through two daemons must equal its verdict on the
 * server directly.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { memberOf } from '../../src/foundation/json.ts';
import { PYTHON } from '../../tools/python-environment.ts';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { assertSame, JudgedServer, type Verdicts, verdictsOf } from '../support/judges.ts';
import { needsPython } from '../support/needs.ts';
import { ready } from '../support/network.ts';

const TOY_AGENT = fileURLToPath(new URL('../support/a2a/toy-agent.ts', import.meta.url));
const CLIENT = fileURLToPath(new URL('../support/a2a/client.ts', import.meta.url));

type Program = readonly [string, ...string[]];
const SERVERS: Readonly<Record<string, Program>> = {
  JavaScript: [process.execPath, TOY_AGENT],
  Python: [PYTHON, join('test', 'python', 'toy_agent.py')],
};
const CLIENTS: Readonly<Record<string, Program>> = {
  JavaScript: [process.execPath, CLIENT],
  Python: [PYTHON, join('test', 'python', 'a2a_client.py')],
};
const LANGUAGES = Object.keys(SERVERS);
/** A client that reports fewer verdicts per interface did not run its checks. */
const MIN_VERDICTS = 20;
const INTERFACES = ['JSONRPC', 'HTTP+JSON', 'GRPC'].flatMap((binding) => ['1.0', '0.3'].map((v) => `${binding} ${v}`));

const skipped = needsPython();

describe('the official A2A SDKs', { concurrency: 2 }, () => {
  let near: TestDaemon;
  let far: TestDaemon;
  const servers = new Map<string, JudgedServer>();
  /** Local addresses of the servers, by language. */
  const origins = new Map<string, string>();
  const aids = new Map<string, string>();

  before(async () => {
    far = await TestDaemon.start();
    near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
    await Promise.all([ready(near), ready(far)]);
    await near.newAgent();
    const wanted = LANGUAGES.filter((language) => language !== 'Python' || skipped === false);
    await Promise.all(
      wanted.map(async (language) => {
        const program = SERVERS[language];
        assert.ok(program !== undefined);
        const server = await JudgedServer.start(program);
        servers.set(language, server);
        const aid = await far.newAgent(`http://127.0.0.1:${server.http},tcp://127.0.0.1:${server.grpc}`);
        await far.call('POST', `/agents/${aid}/publish`);
        aids.set(language, aid);
        origins.set(language, await svcOk(near, '--quiet', 'origin', 'open', aid));
      }),
    );
  });

  after(async () => {
    await Promise.all([...servers.values()].map((server) => server.stop()));
    await Promise.all([near.stop(), far.stop()]);
  });

  /** Runs a client against a server, directly and through svcd. */
  async function runBoth(client: string, server: string): Promise<{ direct: Verdicts; through: Verdicts }> {
    const program = CLIENTS[client];
    const origin = origins.get(server);
    const http = servers.get(server)?.http;
    assert.ok(program !== undefined && origin !== undefined && http !== undefined);
    const [direct, through] = await Promise.all([
      verdictsOf([...program, `http://127.0.0.1:${http}`]),
      verdictsOf([...program, origin]),
    ]);
    const addresses = memberOf(through.others[0], 'addresses');
    assert.ok(Array.isArray(addresses));
    const here = new URL(origin).host;
    for (const address of addresses)
      assert.ok(String(address).replace('http://', '').startsWith(here), String(address));
    return { direct, through };
  }

  for (const client of LANGUAGES)
    for (const server of LANGUAGES) {
      const skip = [client, server].includes('Python') ? skipped : false;
      test(`the ${client} client gets the same results from the ${server} server through svcd as directly`, {
        skip,
      }, async () => {
        const { direct, through } = await runBoth(client, server);
        for (const one of INTERFACES) {
          const count = [...direct.of.keys()].filter((check) => check.startsWith(`${one} `)).length;
          assert.ok(count >= MIN_VERDICTS, `${one}: ${count} verdicts`);
        }
        // Equal verdicts could also mean that both runs failed in the same way.
        for (const what of ['cancel', 'push set', 'extended card'])
          assert.equal(memberOf(direct.of.get(`JSONRPC 1.0 ${what}`), 'error'), undefined, what);
        assertSame(through, direct);
        // A notification that passes through svcd carries the proven caller. svcd does not read gRPC messages, so the
        // server posts those notifications itself.
        const callers = through.others.filter((one) => memberOf(one, 'at') !== undefined);
        assert.ok(callers.length >= INTERFACES.length - 1);
        const extraWebhooks = callers.filter((one) => String(memberOf(one, 'at')).startsWith('JSON-RPC next to GRPC'));
        if (client === 'JavaScript') assert.ok(extraWebhooks.length > 0, 'a gRPC task has a webhook by JSON-RPC');
        for (const one of callers) {
          const isGrpc = String(memberOf(one, 'at')).startsWith('GRPC');
          assert.equal(memberOf(one, 'caller'), isGrpc ? null : aids.get(server), JSON.stringify(one));
        }
      });
    }
});
