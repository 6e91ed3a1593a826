/**
 * `node tools/record-tour.ts`: runs a tour with two daemons and draws what the terminal
 * showed as `docs/tour.svg`. Identities and addresses differ from run to run, so no test compares the picture.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { LocalDaemon, plainEnvironment } from './local-daemon.ts';

const COLUMNS = 92;
const CHARACTER_WIDTH = 8.43;
const LINE_HEIGHT = 19;
const MARGIN = 22;
/** Delay between commands, seconds. */
const PAUSE_S = 1.6;

interface Shot {
  readonly prompt: string;
  readonly command: string;
  readonly output: string;
}

const execute = promisify(execFile);
const checkout = join(import.meta.dirname, '..');
const root = mkdtempSync(join(tmpdir(), 'svcd-tour-'));

/** Runs a command as typed in a user's home, and stores its output. */
class Terminal {
  readonly shots: Shot[] = [];

  async type(daemon: LocalDaemon, prompt: string, args: readonly string[]): Promise<string> {
    const env = { ...plainEnvironment(), NO_COLOR: '1', COLUMNS: String(COLUMNS) };
    const { stdout, stderr } = await execute(
      process.execPath,
      [join(checkout, 'bin/svc'), '--api', daemon.api, ...args],
      { cwd: root, env },
    );
    const command = ['svc', ...args.map((arg) => (/[\s"]/.test(arg) ? `"${arg}"` : arg))].join(' ');
    const output = `${stdout}${stderr}`.trimEnd();
    this.shots.push({ prompt, command, output });
    return output;
  }
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The shots as one picture. Commands appear one at a time, unless the reader prefers reduced motion. */
function draw(shots: readonly Shot[]): string {
  let line = 0;
  const groups = shots.map(({ prompt, command, output }, i) => {
    const texts: string[] = [];
    const add = (kind: string, text: string, lead = ''): void => {
      const cut = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text;
      const y = MARGIN + 14 + line++ * LINE_HEIGHT;
      texts.push(`<text x="${MARGIN}" y="${y}" class="${kind}">${lead}${escapeXml(cut)}</text>`);
    };
    add('command', command, `<tspan class="prompt">${escapeXml(prompt)} </tspan>`);
    for (const text of output.split('\n').filter((one) => one !== '')) add('output', text);
    line += 0.5;
    return `<g style="animation-delay:${(i * PAUSE_S).toFixed(1)}s">${texts.join('')}</g>`;
  });
  const width = Math.ceil(2 * MARGIN + COLUMNS * CHARACTER_WIDTH);
  const height = Math.ceil(2 * MARGIN + line * LINE_HEIGHT);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="A terminal: a machine serves a program; another one calls it, and finds it by its service">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}
.command{fill:#f4f7f8;font-weight:600}.prompt{fill:#5fc7c0;font-weight:400}.output{fill:#a9b8bd}
@media (prefers-reduced-motion:no-preference){g{opacity:0;animation:come .3s forwards}@keyframes come{to{opacity:1}}}
</style>
<rect width="100%" height="100%" rx="10" fill="#10191c"/>
${groups.join('\n')}
</svg>
`;
}

try {
  const options = { checkout, node: process.execPath };
  await using laptop = await LocalDaemon.start({ ...options, dataDir: join(root, 'laptop') }, null);
  await using server = await LocalDaemon.start({ ...options, dataDir: join(root, 'server') }, laptop);
  await using service = createServer((request, response) =>
    response.end(`Hello ${String(request.headers['svc-caller-aid'])}\n`),
  ).listen(8080, '127.0.0.1');
  await once(service, 'listening');
  const terminal = new Terminal();
  const served = await terminal.type(server, 'server $', [
    'serve',
    '8080',
    '--name',
    'demo',
    '--save-master',
    'demo.key',
  ]);
  const aid = /aid1\w+/.exec(served)?.[0];
  if (aid === undefined) throw new Error('The program is not served.');
  await terminal.type(laptop, 'laptop $', ['get', aid, '/']);
  await terminal.type(server, 'server $', ['publish', 'demo.hello', '--brief', 'Greets its callers', '-y']);
  await terminal.type(laptop, 'laptop $', ['search', 'demo.hello']);
  await terminal.type(laptop, 'laptop $', ['alias', 'add', 'hello', aid]);
  await terminal.type(laptop, 'laptop $', ['ping', 'hello', '-c', '2', '--interval', '0.1']);
  writeFileSync(join(checkout, 'docs/tour.svg'), draw(terminal.shots));
} finally {
  rmSync(root, { recursive: true, force: true });
}
