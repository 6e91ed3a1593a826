/** Builds the single file and the container image with the release script, and starts them. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readDaemonInfo } from '../../src/foundation/data-dir/daemon-info.ts';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { manifest } from '../support/package.ts';
import { cannotContain, Image, makePackages } from '../support/packaged.ts';
import { quietPort, run, runOk } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MIB = 1024 * 1024;

/** Two daemons call each other: the agent of one gets an answer from the service of the other. */
async function call(one: TestDaemon, two: TestDaemon): Promise<void> {
  await Promise.all([ready(one), ready(two)]);
  await using service = await EchoService.start();
  const caller = await one.newAgent();
  const callee = await two.newAgent(`http://${service.address}`);
  await two.call('POST', `/agents/${callee}/publish`);
  const answer = await one.call<{ status: number; body: string }>('POST', `/fetch/${callee}`, { path: '/hello' });
  assert.equal(answer.status, 200);
  const echo = JSON.parse(Buffer.from(answer.body, 'base64').toString('utf8'));
  assert.deepEqual([echo.url, echo.headers['svc-caller-aid']], ['/hello', caller]);
}

/** The files that a browser loads first are included too. */
async function showsPages(daemon: TestDaemon): Promise<void> {
  const page = String((await daemon.request('GET', '/')).body);
  const scripts = [...page.matchAll(/(?:src|href)="(\/panel\/[^"]+)"/g)].map(([, path = '']) => path);
  assert.ok(scripts.length > 0, page);
  for (const path of [...scripts, '/docs', '/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/openapi.json'])
    assert.equal((await daemon.request('GET', path)).status, 200, path);
}

interface World {
  readonly out: string;
  readonly svc: string;
  readonly svcd: string;
  readonly env: { readonly PATH: string; readonly HOME: string; readonly XDG_CACHE_HOME: string };
}

async function worldOf(t: TestContext, directory: string, out: string): Promise<World> {
  const [svc, svcd] = [join(out, 'svc'), join(directory, 'svcd')];
  symlinkSync(svc, svcd);
  t.diagnostic(`single file: ${(statSync(svc).size / MIB).toFixed(0)} MiB`);
  // No Node is in the path, and no settings of the user apply.
  const env = { PATH: '/nowhere', HOME: directory, XDG_CACHE_HOME: join(directory, 'cache') };
  return { out, svc, svcd, env };
}

test('one file contains Node, svcd and svc', async (t) => {
  const directory = temporaryDirectory(t);
  const { svc, svcd, env } = await worldOf(t, directory, await makePackages(directory));
  const dataDir = (name: string): string => mkdtempSync(join(directory, `${name}-`));

  await t.test('two daemons from the file call each other and serve the pages', async (t) => {
    const began = performance.now();
    await using one = await TestDaemon.start({ command: [svcd], env, dataDir: dataDir('one') });
    t.diagnostic(`from the start to the API: ${(performance.now() - began).toFixed(0)} ms`);
    await using two = await TestDaemon.start({
      command: [svc, 'svcd'],
      env,
      dataDir: dataDir('two'),
      bootstrap: [one.dhtAddress],
    });
    await call(one, two);
    await showsPages(one);
    const status = await run(svc, ['status', '--json'], { env: { ...env, SVC_API: one.api } });
    assert.equal(status.code, 0, status.stderr);
    assert.equal(JSON.parse(status.stdout).version, manifest.version);
    assert.doesNotMatch(one.output + two.output, /Warning|WARN/);
  });

  await t.test('its name and first argument select the program', async () => {
    const usage = async (program: string, ...words: string[]): Promise<string> =>
      (await runOk(program, [...words, '--help'], { env })).split('\n')[0] ?? '';
    assert.match(await usage(svc), /^Usage: svc /);
    assert.match(await usage(svcd), /^Usage: svcd /);
    assert.match(await usage(svc, 'svcd'), /^Usage: svcd /);
    assert.match(await usage(svcd, 'svc', 'agents'), /^Usage: svc agents /);
    assert.equal(await runOk(svc, ['--version'], { env }), `${manifest.version}\n`);
  });

  await t.test('it starts itself as a service, for an MCP client, and for its own scripts', async () => {
    const directory = dataDir('service');
    // A fixed port, because `svc restart` looks for the daemon at its old port.
    const api = `127.0.0.1:${await quietPort()}`;
    const service = run(
      svc,
      ['svcd', '--data-dir', directory, '--listen', '127.0.0.1:0', '--api-addr', api, 'service', 'run'],
      { env: { ...env, SVCD_MDNS: 'false' } },
    );
    const serving = (other = 0) =>
      eventually('the daemon of the service', () => {
        const info = readDaemonInfo(directory);
        return info !== null && info.api_addr !== null && info.pid !== other && info;
      });
    const first = await serving();
    await runOk(svc, ['restart'], { env: { ...env, SVC_API: `http://${api}` } });
    const second = await serving(first.pid);
    process.kill(second.pid, 'SIGTERM');
    assert.equal((await service).code, 0);

    const printed = JSON.parse(await runOk(svcd, ['mcp', 'print', 'cursor'], { env }));
    const { command, args } = printed.mcpServers.svcd;
    assert.deepEqual([command, args], [svc, ['svcd', '--mcp-stdio', '--mcp-profile', 'lean']]);
    for (const script of ['receive-buffer', 'queue-look'])
      assert.equal((await run(svc, [`script:${script}`, '0', '0', '0', '0', '0'], { env })).code, 0, script);
    assert.match(await runOk(svcd, ['update', '--check'], { env }), /single file/);
  });

  await t.test('native code is loaded only from unchanged files that other users cannot write', async () => {
    const kept = join(env.XDG_CACHE_HOME, 'svcd', 'native');
    assert.deepEqual(
      [kept, ...readdirSync(kept).map((name) => join(kept, name))].map((path) => statSync(path).mode & 0o077),
      [0, 0, 0],
    );
    const [changed = ''] = readdirSync(kept).map((name) => join(kept, name));
    const right = readFileSync(changed);
    writeFileSync(changed, 'something else');
    await (await TestDaemon.start({ command: [svcd], env, dataDir: dataDir('changed') })).stop();
    assert.ok(readFileSync(changed).equals(right), 'the changed file was replaced');

    const temporary = join(directory, 'tmp');
    mkdirSync(temporary);
    const elsewhere = { ...env, XDG_CACHE_HOME: '/dev/null/nothing', TMPDIR: temporary };
    await (await TestDaemon.start({ command: [svcd], env: elsewhere, dataDir: dataDir('elsewhere') })).stop();
    assert.deepEqual(readdirSync(temporary), [], 'no temporary files remain');
  });

  await t.test('the container image runs as its own user, keeps its data and reports its health', async (t) => {
    const file = join(directory, 'out', 'svcd-image.tar');
    if (!existsSync(file)) return t.skip('images are built on Linux only');
    t.diagnostic(`image: ${(statSync(file).size / MIB).toFixed(0)} MiB, hardly compressed`);
    const image = await Image.open(directory, file);
    assert.doesNotMatch(image.config.User, /^(?:0|root)?(?::|$)/);
    const skip = await cannotContain();
    if (skip !== false) return t.skip(skip);

    const [first, second] = [image.volume(), image.volume()];
    const health = (volume: string) => image.exec(volume, image.config.Healthcheck.Test.slice(1));
    assert.notEqual((await health(first)).code, 0, 'the daemon is not running yet');
    await using one = await image.start(first);
    await using two = await image.start(second, [one.dhtAddress]);
    await call(one, two);
    await showsPages(one);
    const { code, stderr } = await health(first);
    assert.equal(code, 0, stderr);
    const agents = await one.call('GET', '/agents');
    assert.equal(await one.kill('SIGTERM'), 0);
    await using again = await image.start(first, [two.dhtAddress]);
    const aids = (list: unknown) =>
      JSON.stringify(list)
        .match(/aid1\w+/g)
        ?.sort();
    assert.deepEqual(aids(await again.call('GET', '/agents')), aids(agents));
  });
});
