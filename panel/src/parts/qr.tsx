/** A QR code: dark on light whatever the theme is, as readers want it. */
import { qrOf } from '../lib/qr.ts';

/** The margin that readers need, modules. */
const QUIET = 4;

export function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  const rows = qrOf(text);
  const size = rows.length + 2 * QUIET;
  const dark = rows.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])),
  );
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join('')} fill="#000" />
    </svg>
  );
}
