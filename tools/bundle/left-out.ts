/** In the place of what a package would load and svcd never uses: asking for it is a mistake. */
export default function leftOut(): never {
  throw new Error('this is no part of the bundle');
}
