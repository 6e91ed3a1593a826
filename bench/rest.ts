/** The REST API compared with bare Fastify and the same response, alternating in one other process. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { load } from './support/http-load.ts';
import type { RestHello } from './support/rest-child.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const ROUNDS = 5;
const ROUND_MS = 1_000;
const WARM_UP_MS = 1_000;
const CONNECTIONS = 32;
const AIM = 0.5;

interface Sample {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

export async function run(): Promise<BenchTable> {
  const child = fork(new URL('support/rest-child.ts', import.meta.url));
  try {
    const [hello] = (await once(child, 'message')) as [RestHello];
    const cpu = async (): Promise<number> => {
      child.send('cpu');
      const [seconds] = (await once(child, 'message')) as [number];
      return seconds;
    };
    const sample = async (port: number, request: string, ms: number): Promise<Sample> => {
      const before = await cpu();
      const answers = await load(port, request, CONNECTIONS, ms);
      return { perSecond: answers / (ms / 1000), cpuMicros: (((await cpu()) - before) * 1e6) / answers };
    };
    const compare = async (what: string, request: string): Promise<BenchRow[]> => {
      const ours: Sample[] = [];
      const bare: Sample[] = [];
      for (const port of [hello.oursPort, hello.barePort]) await sample(port, request, WARM_UP_MS);
      for (let round = 0; round < ROUNDS; round++) {
        ours.push(await sample(hello.oursPort, request, ROUND_MS));
        bare.push(await sample(hello.barePort, request, ROUND_MS));
      }
      const median = (samples: readonly Sample[], key: keyof Sample): number =>
        quantile(
          samples.map((s) => s[key]),
          0.5,
        );
      const [rate, yardstick] = [median(ours, 'perSecond'), median(bare, 'perSecond')];
      const [micros, bareMicros] = [median(ours, 'cpuMicros'), median(bare, 'cpuMicros')];
      return [
        {
          what,
          value: rate,
          unit: '/s',
          yardstick,
          ratio: rate / yardstick,
          aim: `≥ ${AIM}`,
          ok: rate / yardstick >= AIM,
        },
        { what: `${what}, CPU each`, value: micros, unit: 'µs', yardstick: bareMicros, ratio: micros / bareMicros },
      ];
    };
    const head = `Host: 127.0.0.1:${hello.oursPort}\r\n`;
    const read = `GET /agents/${hello.aid} HTTP/1.1\r\n${head}\r\n`;
    const write = `POST /agents/${hello.aid}/heartbeat HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
    return {
      title: 'REST API; yardstick: bare Fastify',
      rows: [
        ...(await compare('reads, GET /agents/{aid}', read)),
        ...(await compare('writes, POST …/heartbeat', write)),
      ],
    };
  } finally {
    child.kill();
  }
}
