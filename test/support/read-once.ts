/** Handlers in tests whose reads do not wait, and whose requests are not repeated. */
import type { EventWaits } from '../../src/capabilities/events/event-waits.ts';
import type { Repeats } from '../../src/operations/handlers/repeats.ts';

export const READ_ONCE: Pick<EventWaits, 'until'> = { until: async (_wait, read) => read() };

export const ACT_ONCE: Pick<Repeats, 'run'> = { run: async ({ act }) => act(() => {}) };
