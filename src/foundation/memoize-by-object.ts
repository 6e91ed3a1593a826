/**
 * A function whose result is kept with the object that it was made of, for as long as that object lives: for what is
 * asked for again and again of objects that never change.
 */
export function memoizeByObject<K extends object, V extends object>(make: (of: K) => V): (of: K) => V {
  const made = new WeakMap<K, V>();
  return (of) => {
    const known = made.get(of);
    if (known !== undefined) return known;
    const value = make(of);
    made.set(of, value);
    return value;
  };
}
