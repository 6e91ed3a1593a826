/** The size of tests that exist twice: a small one in the gate, and a large one in `npm run soak`. */

/** Selects the large size. */
export const SCALE_VARIABLE = 'SVCD_TEST_SCALE';

/** The value for the present size. */
export function scaled<T>(small: T, large: T): T {
  return process.env[SCALE_VARIABLE] === 'large' ? large : small;
}
