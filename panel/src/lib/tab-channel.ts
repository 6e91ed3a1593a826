/** Messages between the tabs of the panel. */

interface TabChannel {
  postMessage(message: unknown): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<unknown>) => void): void;
}

/**
 * Opens a channel to the other tabs. If the browser blocks storage, it may refuse, and the channel then does nothing.
 */
export function tabChannel(name: string): TabChannel {
  try {
    return new BroadcastChannel(name);
  } catch {
    const { port1 } = new MessageChannel();
    port1.close();
    return port1;
  }
}
