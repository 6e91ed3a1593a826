import assert from 'node:assert/strict';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ConfigService } from '../../../src/foundation/config/config-service.ts';
import { CONFIG_KEYS, PATCHABLE_KEYS } from '../../../src/foundation/config/schema.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { run } from '../../support/programs.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

type Options = ConstructorParameters<typeof ConfigService>[0];

function setUp(t: TestContext, text?: string, options: Partial<Options> = {}) {
  const file = options.file ?? join(temporaryDirectory(t), 'config.toml');
  if (text !== undefined) writeFileSync(file, text, { mode: 0o600 });
  const open = () => new ConfigService({ environment: {}, flags: {}, ...options, file });
  return { file, open, read: () => readFileSync(file, 'utf8') };
}

function refusal(pattern: RegExp, details: Record<string, unknown> = {}) {
  return (error: unknown) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, 'config_invalid');
    assert.match(error.message, pattern);
    for (const [name, value] of Object.entries(details)) assert.deepEqual(error.details?.[name], value);
    return true;
  };
}

const TOKEN = 'correct-horse-battery';

test('without a file everything has its default', (t) => {
  const { current, overrides, warnings } = setUp(t).open();
  assert.equal(current.listen_addr, ':4121');
  assert.equal(current.api_addr, '127.0.0.1:2121');
  assert.equal(current.min_observed_peers, 3);
  assert.deepEqual(current.turn_servers, []);
  assert.deepEqual(overrides, {});
  assert.deepEqual(warnings, []);
  assert.ok(Object.isFrozen(current));
});

test('the error for a mistyped key names the key that was meant', (t) => {
  const unknown = (key: string) => setUp(t, `${key} = 1\n`).open;
  assert.throws(
    unknown('log_levl'),
    refusal(/config\.toml line 1: log_levl is not .* key \(did you mean log_level\?\)\.$/),
  );
  assert.throws(unknown('colour'), refusal(/colour is not a configuration key\.$/));
});

test('a flag beats the environment, which beats the file', (t) => {
  const service = setUp(t, 'log_level = "debug"\nlisten_addr = ":1"\nmdns = true\nnetwork = "home"\n', {
    environment: { SVCD_LISTEN_ADDR: ':2', SVCD_MDNS: 'false', SVCD_BOOTSTRAP: 'a:1,b:2', SVCD_NETWORK: '' },
    flags: { listen_addr: ':3', open_browser: 'false', disable_relay: true },
  }).open();
  const { log_level, listen_addr, mdns, bootstrap, network, open_browser, disable_relay } = service.current;
  assert.deepEqual(
    { log_level, listen_addr, mdns, bootstrap, network, open_browser, disable_relay },
    {
      log_level: 'debug',
      listen_addr: ':3',
      mdns: false,
      bootstrap: ['a:1', 'b:2'],
      network: 'home',
      open_browser: false,
      disable_relay: true,
    },
  );
  assert.deepEqual(service.overrides, {
    listen_addr: 'flag',
    mdns: 'environment',
    bootstrap: 'environment',
    open_browser: 'flag',
    disable_relay: 'flag',
  });
});

test('a fault names key and place, and never the value', (t) => {
  const token = `api_token = "${TOKEN} x"`;
  const cases: [Partial<Options> & { text?: string }, RegExp, Record<string, unknown>][] = [
    [{ text: '\n# x\nlisten_adr = ":1"\n' }, /^config\.toml line 3: listen_adr is not/, { key: 'listen_adr', line: 3 }],
    [{ text: '"a\\u0000b" = 1' }, /^config\.toml line 1: "a\\u0000b" is not/, {}],
    [{ text: '[section]\nx = 1' }, /^config\.toml line 1: section is not/, { key: 'section' }],
    [{ text: 'mdns = "yes"' }, /^config\.toml line 1: mdns must be boolean\.$/, { source: 'file' }],
    [{ text: `\n${token}` }, /^config\.toml line 2: api_token must be 8 or more/, {}],
    [{ text: `${token}\nmdns = maybe` }, /^config\.toml line 2, column 8: invalid value\.$/, { line: 2 }],
    [{ text: `${token}\n${token}` }, /^config\.toml line 2, column 1: trying to redefine/, {}],
    [{ text: '__proto__ = 1' }, /^config\.toml line 1.*unsafe property/, {}],
    [{ text: 'mdns = 1979-05-27' }, /mdns must be boolean/, {}],
    [{ environment: { SVCD_MDNS: 'yes' } }, /^environment variable SVCD_MDNS: mdns must be/, { source: 'environment' }],
    [{ environment: { SVCD_API_TOKEN: `${TOKEN} x` } }, /SVCD_API_TOKEN: api_token/, {}],
    [{ flags: { listen_addr: 'x' } }, /^command line: listen_addr must be host:port/, { source: 'flag' }],
  ];
  for (const [{ text, ...options }, pattern, details] of cases) {
    const { open } = setUp(t, text, options);
    assert.throws(open, (error) => {
      refusal(pattern, details)(error);
      assert.ok(error instanceof Error && error.cause === undefined);
      assert.ok(!JSON.stringify([error.message, error]).includes(TOKEN));
      return true;
    });
  }
});

test('a file that is no text, too large or unreadable is refused', (t) => {
  const { file, open } = setUp(t);
  writeFileSync(file, new Uint8Array([0xff, 0xfe, 0x00]));
  assert.throws(open, refusal(/cannot be read as UTF-8/));
  writeFileSync(file, '#'.repeat(300_000));
  assert.throws(open, refusal(/is larger than 262144 bytes/));
  mkdirSync(`${file}.d`);
  assert.throws(setUp(t, undefined, { file: `${file}.d` }).open, refusal(/is not a regular file/));
});

test('a byte order mark is no fault', (t) => {
  assert.equal(setUp(t, '\uFEFFmdns = false\n').open().current.mdns, false);
});

test('an open API beyond loopback does not start', (t) => {
  for (const api_addr of ['0.0.0.0:2121', ':2121', '[::]:0', '192.0.2.1:80', 'example.org:80']) {
    assert.throws(
      setUp(t, `api_addr = "${api_addr}"`).open,
      refusal(/^configuration: api_token is required if api_addr is not a loopback/, { key: 'api_token' }),
    );
    assert.equal(setUp(t, `api_addr = "${api_addr}"\napi_token = "${TOKEN}"`).open().current.api_addr, api_addr);
  }
  assert.throws(setUp(t, 'require_local_token = true').open, refusal(/required with require_local_token/));
});

test('UDP ports that collide do not start', (t) => {
  assert.throws(setUp(t, 'listen_addr = ":65535"').open, refusal(/quic_listen_addr is required/));
  assert.throws(
    setUp(t, 'listen_addr = ":9"\nquic_listen_addr = "127.0.0.1:9"').open,
    refusal(/UDP port of listen_addr/),
  );
  for (const text of [
    'listen_addr = "127.0.0.1:9"\nquic_listen_addr = "127.0.0.2:9"',
    'listen_addr = ":0"\nquic_listen_addr = ":0"',
  ]) {
    assert.doesNotThrow(setUp(t, text).open);
  }
});

test('warns about misspelled variables and a readable file', (t) => {
  const { file, open } = setUp(t, '', {
    environment: { SVCD_API_ADRR: 'x', SVCD_HOME: '/', SVCD_MDNS: '1', SVC_API: 'y' },
    otherVariables: ['SVCD_HOME'],
  });
  assert.deepEqual(open().warnings, ['The environment variable SVCD_API_ADRR sets no configuration key.']);
  chmodSync(file, 0o644);
  assert.match(open().warnings[1] ?? '', /has mode 644/);
});

test('a patch is written with its backup, and keeps comments and the mode of the file', (t) => {
  const { file, open, read } = setUp(t, '# mine\nlog_level = "info" # quiet\n');
  chmodSync(file, 0o644);
  const service = open();
  assert.deepEqual(service.patch({ log_level: 'debug', listen_addr: ':5000' }), {
    ok: true,
    restart_required: ['listen_addr'],
    overridden: [],
  });
  assert.equal(read(), '# mine\nlog_level = "debug" # quiet\nlisten_addr = ":5000"\n');
  assert.equal(readFileSync(`${file}.bak`, 'utf8'), '# mine\nlog_level = "info" # quiet\n');
  assert.deepEqual(readdirSync(dirname(file)).sort(), ['config.toml', 'config.toml.bak']);
  for (const path of [file, `${file}.bak`]) assert.equal(statSync(path).mode & 0o777, 0o644);
  assert.deepEqual([open().current.log_level, open().current.listen_addr], ['debug', ':5000']);
});

test('applies live keys immediately, others after a restart', (t) => {
  const service = setUp(t).open();
  const heard: unknown[] = [];
  const stop = service.onChange((changed, config) => heard.push([[...changed], config.log_level, config.listen_addr]));
  assert.deepEqual(service.patch({ listen_addr: ':5000', log_level: 'warn', auto_publish: true }).restart_required, [
    'listen_addr',
  ]);
  assert.deepEqual(heard, [[['log_level'], 'warn', ':4121']]);
  assert.equal(service.current.listen_addr, ':4121');
  assert.equal(service.redacted().listen_addr, ':5000');
  assert.deepEqual(service.restartRequired, ['listen_addr']);
  assert.deepEqual(service.patch({ log_level: 'error' }).restart_required, []);
  assert.deepEqual(service.patch({ listen_addr: ':5000' }).restart_required, ['listen_addr']);
  assert.deepEqual(service.patch({ listen_addr: ':4121' }).restart_required, []);
  assert.deepEqual(service.restartRequired, []);
  stop();
  service.patch({ log_level: 'info' });
  assert.equal(heard.length, 2);
});

test('a patch is all or nothing', (t) => {
  const { file, open, read } = setUp(t, 'mdns = false\n');
  const service = open();
  service.onChange(() => assert.fail('nothing has changed'));
  const bad: [Record<string, unknown>, RegExp, string][] = [
    [{ log_level: 'debug', nope: 1 }, /^request: nope is not a configuration key/, 'nope'],
    [JSON.parse('{"log_level": "debug", "__proto__": 1}'), /is not a configuration key/, '__proto__'],
    [{ log_level: 'debug', listen_addr: 4121 }, /^request: listen_addr must be string/, 'listen_addr'],
    [
      { log_level: 'debug', min_observed_peers: '3' },
      /^request: min_observed_peers must be integer/,
      'min_observed_peers',
    ],
    [{ log_level: 'debug', disable_upnp: 'true' }, /^request: disable_upnp must be boolean/, 'disable_upnp'],
    [{ log_level: 'debug', bootstrap: 'a:1' }, /^request: bootstrap must be array/, 'bootstrap'],
    [{ log_level: 'debug', api_token: null }, /^request: api_token must be string/, 'api_token'],
    [{ log_level: 'debug', api_addr: '0.0.0.0:1' }, /api_token is required/, 'api_token'],
    [{ log_level: 'verbose' }, /must be one of: debug, info/, 'log_level'],
  ];
  for (const key of CONFIG_KEYS.filter((name) => !PATCHABLE_KEYS.has(name))) {
    bad.push([
      { log_level: 'debug', [key]: service.current[key] },
      /cannot be changed over the API: edit config\.toml/,
      key,
    ]);
  }
  for (const [partial, pattern, key] of bad) {
    assert.throws(() => service.patch(partial), refusal(pattern, { key }));
  }
  assert.equal(bad.length, 39);
  assert.equal(read(), 'mdns = false\n');
  assert.deepEqual(readdirSync(dirname(file)), ['config.toml']);
  assert.equal(service.current.log_level, 'info');
});

test('a patch that cannot be written changes nothing', (t) => {
  const { file, open } = setUp(t);
  const service = open();
  service.onChange(() => assert.fail('nothing has changed'));
  mkdirSync(join(`${file}.tmp`, 'in the way'), { recursive: true });
  assert.throws(() => service.patch({ log_level: 'debug' }), { code: 'not_writable' });
  assert.equal(service.current.log_level, 'info');
  assert.equal(service.redacted().log_level, 'info');
});

test('keeps manual changes of the file, or stops the patch if they are invalid', (t) => {
  const { file, open, read } = setUp(t, 'log_level = "info"\n');
  const service = open();
  writeFileSync(file, '# by hand\nlog_level = "warn"\nnetwork = "lab"\n');
  service.patch({ disable_upnp: true });
  assert.equal(read(), '# by hand\nlog_level = "warn"\nnetwork = "lab"\ndisable_upnp = true\n');
  assert.equal(service.current.log_level, 'warn');
  assert.equal(service.current.network, '');
  writeFileSync(file, 'log_level = \n');
  assert.throws(() => service.patch({ disable_upnp: false }), refusal(/line 1/));
  assert.equal(read(), 'log_level = \n');
});

test('the API never becomes open while it still listens beyond loopback', (t) => {
  const service = setUp(t, `api_addr = "0.0.0.0:2121"\napi_token = "${TOKEN}"\n`).open();
  assert.deepEqual(service.patch({ api_addr: '127.0.0.1:2121' }).restart_required, ['api_addr']);
  assert.throws(() => service.patch({ api_token: '' }), refusal(/api_token is required/));
  assert.equal(service.current.api_token, TOKEN);
});

test('secrets are not shown, and a redacted value sent back changes nothing', (t) => {
  const servers = [
    { url: 'turn:a', username: 'u', credential: 'pass-word-a' },
    { url: 'turn:a', username: 'v', credential: 'pass-word-b', credential_type: 'hmac' },
    {
      url: 'turn:c',
      credential_type: 'rest_api',
      credential_url: 'https://key-user:key-pass@c.example/turn?key=key-query',
    },
  ];
  const { file, open, read } = setUp(t, `api_token = "${TOKEN}"\n`);
  const service = open();
  service.patch({ turn_servers: servers });
  const shown = service.redacted();
  assert.equal(shown.api_token, '***');
  assert.deepEqual(
    shown.turn_servers.map((server) => server.credential),
    ['***', '***', ''],
  );
  assert.equal(shown.turn_servers[2]?.credential_url, 'https://c.example/turn?***');
  assert.doesNotMatch(JSON.stringify(shown), /pass-word|key-|horse/);

  const before = read();
  const { api_token, turn_servers } = shown;
  assert.deepEqual(service.patch({ api_token, turn_servers }).restart_required, ['turn_servers']);
  assert.equal(read(), before);

  service.patch({ turn_servers: [turn_servers[2], { ...turn_servers[0], credential: 'new-pass' }, turn_servers[1]] });
  const { current } = new ConfigService({ file, environment: {}, flags: {} });
  assert.deepEqual(
    current.turn_servers.map((s) => [s.url, s.username, s.credential, s.credential_url]),
    [
      ['turn:c', '', '', servers[2]?.credential_url],
      ['turn:a', 'u', 'new-pass', ''],
      ['turn:a', 'v', 'pass-word-b', ''],
    ],
  );
});

test('the password of a proxy is not shown', (t) => {
  const proxy = 'http://me:pass-word@proxy.example:3128';
  const { open, read } = setUp(t, `proxy = "${proxy}"\nproxy_command = "echo me:pass-word"\n`);
  const service = open();
  const shown = service.redacted();
  assert.deepEqual([shown.proxy, shown.proxy_command], ['http://***@proxy.example:3128', '***']);
  service.set('proxy', shown.proxy);
  service.set('proxy_command', shown.proxy_command);
  assert.match(read(), /me:pass-word@proxy/);
  service.set('proxy', 'none');
  assert.equal(service.redacted().proxy, 'none');
  assert.throws(
    () => service.set('proxy', 'socks5://me:pass-word@a:1'),
    refusal(/proxy must be "auto", "none", or a URL/),
  );
});

test('a redacted secret cannot be sent on to another server', (t) => {
  const service = setUp(t).open();
  service.patch({
    turn_servers: [
      { url: 'turn:a', username: 'u', credential: 'secret' },
      { url: 'turn:b', credential_type: 'rest_api', credential: 'bearer', credential_url: 'https://b.example/?key' },
    ],
  });
  const [a, b] = service.redacted().turn_servers;
  for (const entry of [
    { ...a, url: 'turn:evil.example' },
    { ...a, username: 'w' },
    { ...a, credential_type: 'hmac' },
    { ...b, credential_url: 'https://evil.example/?***' },
    { ...b, credential_url: 'https://evil.example/' },
  ]) {
    assert.throws(
      () => service.patch({ turn_servers: [entry] }),
      refusal(/turn_servers at 0 contains a redacted secret/),
    );
  }
});

test('a redacted empty token does not unset the token', (t) => {
  const service = setUp(t).open();
  assert.equal(service.redacted().api_token, '');
  assert.deepEqual(service.patch({ api_token: '***' }).restart_required, []);
  assert.equal(service.current.api_token, '');
});

test('values of flags and the environment are never written to the file', (t) => {
  const { open, read } = setUp(t, 'listen_addr = ":1"\n', {
    environment: {
      SVCD_API_TOKEN: TOKEN,
      SVCD_LOG_LEVEL: 'debug',
      SVCD_TURN_SERVERS: '[{"url": "turn:a", "username": "u", "credential": "env-secret"}]',
    },
    flags: { listen_addr: ':2' },
  });
  const service = open();
  const patchable = Object.fromEntries(
    Object.entries(service.redacted()).filter(([key]) => [...PATCHABLE_KEYS].some((k) => k === key)),
  );
  assert.deepEqual(service.patch(patchable), { ok: true, restart_required: [], overridden: [] });
  assert.equal(read(), 'listen_addr = ":1"\n');

  assert.deepEqual(service.patch({ listen_addr: ':3', log_level: 'error', disable_upnp: true }), {
    ok: true,
    restart_required: ['listen_addr', 'log_level', 'disable_upnp'],
    overridden: ['listen_addr', 'log_level'],
  });
  assert.equal(read(), 'listen_addr = ":3"\nlog_level = "error"\ndisable_upnp = true\n');
  assert.deepEqual(
    [service.current.listen_addr, service.current.log_level, service.current.api_token],
    [':2', 'debug', TOKEN],
  );

  const other = { url: 'turn:b', username: 'u', credential: 'mine' };
  assert.throws(
    () => service.patch({ turn_servers: [...service.redacted().turn_servers, other] }),
    refusal(/redacted secret/),
  );
  assert.doesNotMatch(read(), /env-secret/);
});

test('a patch that only a flag keeps from stopping the next start is refused', (t) => {
  const flags = { api_addr: '127.0.0.1:2121' };
  const { open, read } = setUp(t, 'log_level = "info"\n', { flags });
  const service = open();
  assert.throws(() => service.patch({ api_addr: '0.0.0.0:2121' }), refusal(/api_token is required/));
  assert.equal(read(), 'log_level = "info"\n');
  service.patch({ api_addr: '0.0.0.0:2121', api_token: TOKEN });
  assert.throws(() => service.patch({ api_token: '' }), refusal(/api_token is required/));
  // The same with a variable; a token that only a variable sets is there at the next start.
  const set = setUp(t, '', { environment: { SVCD_API_ADDR: '127.0.0.1:1' } }).open();
  assert.throws(() => set.patch({ api_addr: '0.0.0.0:2121' }), refusal(/api_token is required/));
  const secret = setUp(t, '', { environment: { SVCD_API_TOKEN: TOKEN }, flags }).open();
  assert.equal(secret.patch({ api_addr: '0.0.0.0:2121' }).ok, true);
  // An invalid value in the file does not block other changes.
  const wrong = setUp(t, 'api_addr = "0.0.0.0:2121"\n', { flags }).open();
  assert.equal(wrong.patch({ log_level: 'warn' }).ok, true);
});

test('a link that leads to no file yet is written through', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'config.toml');
  symlinkSync('elsewhere.toml', join(directory, 'second.toml'));
  symlinkSync('second.toml', file);
  setUp(t, undefined, { file }).open().patch({ log_level: 'warn' });
  assert.equal(readFileSync(join(directory, 'elsewhere.toml'), 'utf8'), 'log_level = "warn"\n');
  assert.equal(lstatSync(file).isSymbolicLink(), true);
});

test('changes a bind-mounted file in place, with a backup', async (t) => {
  const directory = temporaryDirectory(t);
  const [own, file] = [join(directory, 'own.toml'), join(directory, 'config.toml')];
  writeFileSync(own, 'log_level = "warn"\n# to stay\n');
  writeFileSync(file, '');
  const program = `
    const { ConfigService } = await import(process.argv[1]);
    new ConfigService({ environment: {}, flags: {}, file: process.argv[2] }).patch({ log_level: 'info' });`;
  const module = join(import.meta.dirname, '../../../src/foundation/config/config-service.ts');
  const mount = 'mount --bind "$0" "$1" || exit 99; shift; file="$1"; shift; exec "$@"';
  const node = [process.execPath, '--input-type=module', '--eval', program, module, file];
  const { code, stderr } = await run('unshare', ['-Urm', 'sh', '-c', mount, own, file, file, ...node]);
  if (code === 99 || stderr.startsWith('unshare')) return t.skip('needs mount namespaces (unshare)');
  assert.equal(code, 0, stderr);
  assert.equal(readFileSync(own, 'utf8'), 'log_level = "info"\n# to stay\n');
  assert.deepEqual(readdirSync(directory).sort(), ['config.toml', 'config.toml.bak', 'own.toml']);
  assert.equal(readFileSync(`${file}.bak`, 'utf8'), 'log_level = "warn"\n# to stay\n');
});

test('changes the target of a link', (t) => {
  const directory = temporaryDirectory(t);
  const real = join(directory, 'real.toml');
  writeFileSync(real, 'mdns = false\n');
  symlinkSync(real, join(directory, 'config.toml'));
  setUp(t, undefined, { file: join(directory, 'config.toml') })
    .open()
    .patch({ disable_upnp: true });
  assert.equal(readFileSync(real, 'utf8'), 'mdns = false\ndisable_upnp = true\n');
});
