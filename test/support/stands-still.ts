/** Round trips without progress after which nothing moves any more. */
const QUIET_ROUND_TRIPS = 12;

/**
 * Waits until something stands still although it could move: while other traffic, that goes the same
 * way, came and went.
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
