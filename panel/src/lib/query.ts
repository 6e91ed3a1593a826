/** Questions to the daemon in components, and what they do there. */
import { useEffect } from 'preact/hooks';
import { call, type Input, type Name, type Output } from './api.ts';
import { type Known, QueryCache } from './cache.ts';
import { here } from './place.ts';
import { useRedraw } from './redraw.ts';

const cache = new QueryCache({
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
});

/** Starts to leave the daemon alone while the page is hidden. */
export function heedVisibility(): void {
  const see = (): void => cache.see(document.visibilityState === 'visible');
  document.addEventListener('visibilitychange', see);
  see();
}

function keyOf(base: string, name: Name, input: unknown): string {
  return `${base} ${name} ${JSON.stringify(input)}`;
}

/** Asks anew all that is shown. */
export function refresh(): void {
  cache.refresh(() => true);
}

/** Asks anew what operations of this node answered, of one agent where they name one. */
export function refreshOf(names: ReadonlySet<string>, aid: string): void {
  cache.refresh((key) => {
    const [base = '', name = ''] = key.split(' ', 2);
    return base === '' && names.has(name) && (!key.includes('"aid":') || key.includes(`"aid":"${aid}"`));
  });
}

/**
 * Does an operation on the node that is looked at.
 * @param base of that node. Whatever waits before it calls has to pass it: meanwhile the user may look at another one.
 */
export function perform<K extends Name>(name: K, input: Input<K>, base = here().base): Promise<Output<K>> {
  return call(base, name, input);
}

/**
 * What the looked-at node answers to an operation that only reads.
 * @param everyMs asks again after so many milliseconds; 0: when it is shown anew
 */
export function useQuery<K extends Name>(name: K, input: Input<K>, everyMs = 0): Known<Output<K>> {
  const { base } = here();
  const key = keyOf(base, name, input);
  const render = useRedraw();
  useEffect(() => cache.watch(key, () => call(base, name, input), everyMs, render), [key, everyMs]);
  // Under this key stands what this operation answered.
  return cache.get(key) as Known<Output<K>>;
}
