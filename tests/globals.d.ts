import '../client/global.ts';

declare global {
  const webmcpRelay: typeof import('../client/token.ts');
}
