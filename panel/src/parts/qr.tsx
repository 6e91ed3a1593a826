/** A QR code: dark on light whatever the theme is, as readers want it. */
import { encode } from 'uqr';

/** The margin that readers need, modules. */
const QUIET = 4;

export function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  // Level M: a printed master key may get a stain or a fold.
  const { data, size } = encode(text, { ecc: 'M', border: QUIET });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join('')} fill="#000" />
    </svg>
  );
}
