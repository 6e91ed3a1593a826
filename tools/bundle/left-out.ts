/** Replaces code that packages load and svcd never uses. */
export default function leftOut(): never {
  throw new Error('this module is not in the bundle');
}
