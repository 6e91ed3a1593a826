import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';
import { clientProgram } from '../../tools/command-tree.ts';
import { svc, svcJson } from '../support/cli.ts';
import { runSvc } from '../support/cli-run.ts';
import type { Expected, Step } from '../support/command-step.ts';
import { commandsOf } from '../support/command-tree.ts';
import { NOT_WALKED, walk } from '../support/command-walk.ts';
import { TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { type Shape, shapeOf } from '../support/json-shape.ts';
import { ready } from '../support/network.ts';
import { run } from '../support/programs.ts';
import { brokenPromises, RECORDING, record } from '../support/promised-json.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ESC = '\u001b';
const ESCAPES = new RegExp(`${ESC}\\[[0-9;?]*[A-Za-z]`, 'g');

const ajv = new Ajv2020({ strict: false, formats: { aid: true, 'date-time': true } });

/** An output mode: its option, and the checks that every command must pass in it. */
interface OutputMode {
  readonly name: string;
  readonly options: readonly string[];
  readonly terminal: boolean;
  readonly check: (printed: { stdout: string; stderr: string }, expected: Expected, line: string) => void;
}

function checkJson(text: string, schema: TSchema, line: string): void {
  const validate = ajv.compile(schema);
  assert.ok(validate(JSON.parse(text)), `${line}: ${ajv.errorsText(validate.errors)}\n${text}`);
}

const OUTPUT_MODES: readonly OutputMode[] = [
  {
    name: '--json in a pipe',
    options: ['--json'],
    terminal: false,
    check: ({ stdout }, { schema, lines }, line) => {
      assert.doesNotMatch(stdout, ESCAPES, line);
      const documents = lines === true ? stdout.trimEnd().split('\n') : [stdout];
      if (schema !== null) for (const document of documents) checkJson(document, schema, line);
    },
  },
  {
    name: 'text in a pipe',
    options: [],
    terminal: false,
    check: ({ stdout, stderr }, { text }, line) => {
      assert.doesNotMatch(stdout + stderr, ESCAPES, `${line}: no colors, no progress`);
      assert.match(stdout.trimEnd(), text, line);
    },
  },
  {
    name: '--quiet',
    options: ['--quiet'],
    terminal: false,
    check: ({ stdout, stderr }, { quiet }, line) => {
      assert.match(stdout.replace(/\n$/, ''), quiet, line);
      if (!/doctor/.test(line)) assert.equal(stderr, '', line);
    },
  },
  {
    name: 'on a terminal',
    options: [],
    terminal: true,
    check: ({ stdout }, { text }, line) => assert.match(stdout.replaceAll(ESCAPES, '').trimEnd(), text, line),
  },
];

async function leaves(): Promise<string[]> {
  const all = commandsOf(await clientProgram()).map(({ name }) => name);
  return all.filter((name) => !all.some((other) => other.startsWith(`${name} `)));
}

/** Stores the shape of a command's output. A command whose shape depends on its arguments has several. */
function keep(shapes: Map<string, Shape>, names: readonly string[], args: readonly string[], shape: Shape): void {
  const name = names.find((one) => `${args.join(' ')} `.startsWith(`${one} `)) ?? args.join(' ');
  const same = (one: Shape | undefined): boolean => one === undefined || isDeepStrictEqual(one, shape);
  let key = name;
  for (let i = 2; !same(shapes.get(key)); i++) key = `${name} (${i})`;
  shapes.set(key, shape);
}

/** A web service with an agent card. */
async function cardServer(t: TestContext): Promise<string> {
  const server = createServer((_request, response) => response.end('{"name":"Carded","skills":[]}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `127.0.0.1:${address.port}`;
}

test('every command in every output mode', async (t) => {
  const directory = temporaryDirectory(t);
  const filesRoot = join(directory, 'files');
  mkdirSync(filesRoot);
  await using here = await TestDaemon.start({ config: `files_root = ${JSON.stringify(filesRoot)}\n` });
  await using there = await TestDaemon.start({ bootstrap: [here.dhtAddress] });
  await Promise.all([ready(here), ready(there)]);
  await using service = await EchoService.start();
  const names = await leaves();
  const shapes = new Map<string, Shape>();
  for (const mode of OUTPUT_MODES) {
    await t.test(mode.name, async () => {
      const walked = new Set<string>();
      const step: Step = async (at, args, expected) => {
        const line = `svc ${[...mode.options, ...args].join(' ')}`;
        const { input } = expected;
        // A prompt would wait for a person, so the input comes from a pipe.
        const terminal = mode.terminal && input === undefined;
        const options = {
          terminal,
          env: { SVC_API: at.api, SVCD_DATA_DIR: at.dataDir, PATH: process.env['PATH'] ?? '' },
          ...(input === undefined ? {} : { input }),
        };
        const { code, ...printed } = await runSvc([...mode.options, ...args], options);
        assert.ok((expected.codes ?? [0]).includes(code ?? -1), `${line}: exit code ${code}\n${printed.stderr}`);
        mode.check(printed, expected, line);
        if (mode === OUTPUT_MODES[0] && expected.schema !== null) keep(shapes, names, args, shapeOf(expected.schema));
        const name = names.find((one) => `${args.join(' ')} `.startsWith(`${one} `));
        if (name !== undefined) walked.add(name);
      };
      const own = join(directory, String(OUTPUT_MODES.indexOf(mode)));
      mkdirSync(own);
      await walk(step, { here, there, service: service.address, directory: own });
      const left = names.filter((name) => !walked.has(name));
      assert.deepEqual(left.sort(), Object.keys(NOT_WALKED).sort(), 'commands that the walk does not cover');
    });
  }

  await t.test('--json contains every promised field', () => {
    if (process.env[RECORDING] !== undefined)
      record({ commands: Object.fromEntries([...shapes].sort(([a], [b]) => (a < b ? -1 : 1))) });
    assert.deepEqual(brokenPromises(shapes), []);
  });

  await t.test('the real command, on a real terminal', async () => {
    const { api } = here;
    const cards = await cardServer(t);
    // Each of these variables would disable or force colors.
    const plain = { CI: undefined, FORCE_COLOR: undefined, NO_COLOR: undefined, NODE_DISABLE_COLORS: undefined };
    const onTerminal = (line: string, input = '') =>
      run('script', ['-qec', `"${process.execPath}" bin/svc ${line}`, '/dev/null'], {
        input,
        env: { SVC_API: api, TERM: 'xterm', ...plain },
      });
    const doctor = await onTerminal('doctor');
    assert.ok(doctor.stdout.includes(`${ESC}[32mPASS${ESC}[39m  the daemon responds`));
    const status = await onTerminal('status');
    assert.equal(status.code, 0);
    assert.match(status.stdout, /^node: +aid1/m);
    const asked = await onTerminal('--json status');
    assert.ok(JSON.parse(asked.stdout));
    assert.equal((await onTerminal('status --api 127.0.0.1:1')).code, 3);

    // A card is shown with a prompt; in a pipe there is no prompt.
    const aid = await here.newAgent();
    const card = `publish cards.test --aid ${aid} --from ${cards}`;
    assert.equal((await onTerminal(card, 'n\n')).code, 1);
    assert.equal((await svc(here, card.split(' '))).code, 2);
    assert.deepEqual((await here.call<{ services: string[] }>('GET', `/agents/${aid}`)).services, []);
    const agreed = await onTerminal(card, 'y\n');
    assert.match(agreed.stdout, /Draft from http[\s\S]*name: +Carded[\s\S]*Published cards\.test/);
    const found = await svcJson<{ entries: { name: string; protocols: string[] }[] }>(there, 'search', 'cards.test');
    assert.deepEqual(
      found.entries.map(({ name, protocols }) => [name, protocols]),
      [['Carded', ['a2a']]],
    );
    const piped = await svc(here, ['doctor']);
    assert.doesNotMatch(piped.stdout + piped.stderr, ESCAPES);
  });
});
