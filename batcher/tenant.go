package batcher

// A tenant owns what round robin and QueueTenantMax are about. It exists while it has entries or
// callers that wait for its room.
type tenant[T any] struct {
	name    string
	users   int // items and calls in line
	waiting int // entries that count towards QueueTenantMax
	own     lane[T]
	seats   [numPools]seat[T]
	line    ring[call[T]]   // calls whose next entry waits for this tenant's room
	roomy   node[tenant[T]] // in Batcher.roomy
}

// A seat is a tenant's place in the round of one pool, with those of its lanes that offer entries
// there, its groups taking turns too.
type seat[T any] struct {
	tenant *tenant[T]
	pool   *pool[T]
	lanes  ring[lane[T]]
	inPool node[seat[T]]
	taken  int // entries of groups since the round came to it
}

// A pool holds the lanes that requests are filled from. With OneGroupPerRequest a group's lane
// fills a request by itself, so only those that may leave now are looked at, and the ones that
// linger sit apart.
type pool[T any] struct {
	seats ring[seat[T]]
	load  load // what all lanes offer
	due   int  // lanes that are due
}

const (
	poolShared    = iota // lanes whose entries share requests
	poolDue              // OneGroupPerRequest: groups that leave
	poolLingering        // OneGroupPerRequest: groups that linger
	numPools
)

// tenantLocked finds or makes a tenant. One that has got no user by then is given back with
// dropTenantLocked.
func (b *Batcher[T]) tenantLocked(name string) *tenant[T] {
	if t := b.tenants[name]; t != nil {
		return t
	}
	t := take(&b.freeTenants)
	if t == nil {
		t = &tenant[T]{}
		t.roomy.of = t
		t.own.init()
		for i := range t.seats {
			s := &t.seats[i]
			s.tenant, s.pool, s.inPool.of = t, &b.pools[i], s
		}
	}
	t.name = name
	b.tenants[name] = t
	return t
}

func (b *Batcher[T]) dropTenantLocked(t *tenant[T]) {
	if t.users == 0 {
		if t.roomy.linked() {
			b.roomy.remove(&t.roomy)
		}
		delete(b.tenants, t.name)
		t.name = ""
		b.freeTenants = append(b.freeTenants, t)
	}
}
