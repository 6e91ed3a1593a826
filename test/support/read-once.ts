/** Handlers in tests whose reads do not wait. */
import type { EventWaits } from '../../src/capabilities/events/event-waits.ts';

export const READ_ONCE: Pick<EventWaits, 'until'> = { until: async (_wait, read) => read() };
