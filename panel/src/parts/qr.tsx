/** A QR code. It is dark on light in every theme, because readers require it. */
import { encode } from 'uqr';

/** The margin that QR readers require, modules. */
const QUIET = 4;

export function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  // Level M, because a printed master key may get stains or folds.
  const { data, size } = encode(text, { ecc: 'M', border: QUIET });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join('')} fill="#000" />
    </svg>
  );
}
