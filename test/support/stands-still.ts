/** Number of round trips without progress that count as stopped. */
const QUIET_ROUND_TRIPS = 12;

/**
 * Waits until something has stopped although it could move: other traffic on the same path made round trips meanwhile.
 */
export async function standsStill(progress: () => number, roundTrip: () => Promise<void>): Promise<void> {
  let seen = progress();
  for (let quiet = 0; quiet < QUIET_ROUND_TRIPS; quiet++) {
    await roundTrip();
    if (progress() === seen) continue;
    seen = progress();
    quiet = 0;
  }
}
