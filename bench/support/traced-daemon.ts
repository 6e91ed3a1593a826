/** A daemon whose traces a benchmark turns on and off while it runs, with messages. */
import { isObject } from '../../src/foundation/json.ts';
import { Traces } from '../../src/foundation/traces/traces.ts';

/** Without traces, with traces that are not sampled, or with sampled ones. */
export type TraceMode = 'without' | 'unsampled' | 'sampled';

let mode: unknown = 'without';
Object.defineProperty(Traces.prototype, 'isOn', { get: () => mode !== 'without' && mode !== 'control' });
Object.defineProperty(Traces.prototype, 'percent', { get: () => (mode === 'sampled' ? 100 : 0) });
process.on('message', (message) => {
  if (isObject(message) && 'mode' in message) mode = message['mode'];
});
await import('../../src/daemon/main.ts');
