// Owns listening on loopback, and there only. A browser may take `localhost` for ::1 or for 127.0.0.1, so both
// get a server on one port; a machine without IPv6 does with one.

const noSuchFamily = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

const listen = (server, port, host) =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server.address().port));
  });

const close = (server) =>
  new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });

/** Rejects with EADDRINUSE if either address has the port taken (by whom `localhost` might then be answered). */
export async function listenOnLoopback(newServer, wanted) {
  const v4 = newServer();
  const port = await listen(v4, wanted, '127.0.0.1');
  const servers = [v4];
  const v6 = newServer();
  try {
    await listen(v6, port, '::1');
    servers.push(v6);
  } catch (error) {
    if (!noSuchFamily.has(error.code)) {
      await close(v4);
      throw error;
    }
  }
  return { port, close: async () => void (await Promise.all(servers.map(close))) };
}
