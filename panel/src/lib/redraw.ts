/** Renders a component again. */
import { useState } from 'preact/hooks';

export function useRedraw(): () => void {
  const [, set] = useState({});
  return () => set({});
}
