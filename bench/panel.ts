/**
 * The cost of the panel: time until a browser shows it, load on the daemon while it is open, and its size in the
 * package. The yardstick is the same daemon without a panel. Needs Chromium.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { NO_CHROMIUM, startChromium } from '../test/support/browser/chromium.ts';
import { PolledDaemon } from './support/polled-daemon.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const DAEMON = [process.execPath, 'bin/svcd'] as const;
const PANEL = join(import.meta.dirname, '../dist/panel');
const KIB = 1024;
const AGENTS = 20;
/** Page loads with an empty browser cache, and with a filled one. */
const LOADS = 9;
/** Time of each CPU and memory measurement, without and with a panel, milliseconds. */
const WATCHED_MS = 60_000;
/** Time for an opened page to finish its first requests, milliseconds. */
const SETTLED_MS = 5_000;
const FIRST_PAINT_MS = 400;
const SHOWN_MS = 700;
const MAX_CPU_PERCENT = 1;
const MAX_MEMORY_MIB = 2;

/** First paint, milliseconds after navigation. */
const FIRST_PAINT_SCRIPT = `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`;

interface Loaded {
  readonly paintedMs: number;
  readonly shownMs: number;
}

/** Loads the home page of the panel until it shows the agents. */
async function load(browser: Browser, api: string, visits: number): Promise<Loaded> {
  const context = await browser.newContext({ locale: 'en-GB' });
  const page = await context.newPage();
  try {
    let shownMs = 0;
    for (let i = 0; i < visits; i++) {
      const began = performance.now();
      await page.goto(`${api}/`, { waitUntil: 'commit' });
      await page.locator('main tbody tr').first().waitFor();
      shownMs = performance.now() - began;
    }
    return { paintedMs: await page.evaluate<number>(FIRST_PAINT_SCRIPT), shownMs };
  } finally {
    await context.close();
  }
}

async function loads(browser: Browser, api: string, visits: number): Promise<Loaded> {
  const all: Loaded[] = [];
  for (let i = 0; i < LOADS; i++) all.push(await load(browser, api, visits));
  return {
    paintedMs: quantile(
      all.map(({ paintedMs }) => paintedMs),
      0.5,
    ),
    shownMs: quantile(
      all.map(({ shownMs }) => shownMs),
      0.5,
    ),
  };
}

interface Cost {
  readonly cpuPercent: number;
  readonly residentMib: number;
}

async function watched(daemon: PolledDaemon): Promise<Cost> {
  const before = daemon.cpuMs();
  await delay(WATCHED_MS);
  return { cpuPercent: ((daemon.cpuMs() - before) / WATCHED_MS) * 100, residentMib: daemon.residentMib() };
}

function rowOf(what: string, value: number, limit: number, unit: string): BenchRow {
  return { what, value, unit, aim: `≤ ${limit} ${unit}`, ok: value <= limit };
}

function sizes(): readonly BenchRow[] {
  // A checkout also contains files of earlier builds.
  const manifest: { files: Record<string, string> } = JSON.parse(readFileSync(join(PANEL, 'manifest.json'), 'utf8'));
  const files = ['index.html', 'manifest.json', ...Object.keys(manifest.files)].map((file) => join(PANEL, file));
  const sum = (sizeOf: (file: string) => number): number => files.reduce((all, file) => all + sizeOf(file), 0) / KIB;
  return [
    { what: 'the panel in the package', value: sum((file) => statSync(file).size), unit: 'KiB' },
    {
      what: 'the panel in the package, gzipped',
      value: sum((file) => gzipSync(readFileSync(file), { level: 9 }).length),
      unit: 'KiB',
    },
  ];
}

export async function run(): Promise<BenchTable> {
  if (NO_CHROMIUM !== false) throw new Error(NO_CHROMIUM);
  await using daemon = await PolledDaemon.start(DAEMON);
  for (let i = 0; i < AGENTS; i++) await daemon.newAgent();
  await using browser = await startChromium();
  // One load fills the daemon's caches.
  await load(browser, daemon.api, 1);
  const fresh = await loads(browser, daemon.api, 1);
  const again = await loads(browser, daemon.api, 2);
  const without = await watched(daemon);
  const page = await browser.newPage();
  await page.goto(`${daemon.api}/`);
  await delay(SETTLED_MS);
  const open = await watched(daemon);
  return {
    title: 'The panel',
    rows: [
      rowOf('first paint, nothing kept by the browser', fresh.paintedMs, FIRST_PAINT_MS, 'ms'),
      rowOf(`${AGENTS} agents shown, nothing kept`, fresh.shownMs, SHOWN_MS, 'ms'),
      rowOf('first paint, the second time', again.paintedMs, FIRST_PAINT_MS, 'ms'),
      rowOf(`${AGENTS} agents shown, the second time`, again.shownMs, SHOWN_MS, 'ms'),
      {
        ...rowOf('processor with the panel open', open.cpuPercent, without.cpuPercent + MAX_CPU_PERCENT, '%'),
        yardstick: without.cpuPercent,
        aim: `≤ ${MAX_CPU_PERCENT} % more`,
      },
      {
        ...rowOf('memory with the panel open', open.residentMib, without.residentMib + MAX_MEMORY_MIB, 'MiB'),
        yardstick: without.residentMib,
        aim: `≤ ${MAX_MEMORY_MIB} MiB more`,
      },
      ...sizes(),
    ],
  };
}
